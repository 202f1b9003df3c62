//! The toolbox as a program: a Lambda function on Lambda, a local server elsewhere.

use lambda_tools::run;
use toolbox::Endpoints;

fn main() -> Result<(), lambda_tools::Error> {
    run(toolbox::server(toolbox::tools(Endpoints::from_env()))?)
}
