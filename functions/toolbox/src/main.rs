//! The toolbox as a program: a Lambda function on Lambda, a local server elsewhere.

use lambda_tools::serve;
use toolbox::Endpoints;

#[tokio::main]
async fn main() -> Result<(), lambda_tools::Error> {
    serve(toolbox::server(toolbox::tools(Endpoints::from_env()))?).await
}
