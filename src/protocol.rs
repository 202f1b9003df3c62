//! The protocols: equal siblings, each a codec between bytes and calls, on one driver.
//!
//! The HTTP surface is one [`Router`], so that it can be layered, merged with routes of one's own
//! and tested without a socket. A protocol is a folder here and a line in [`protocols!`].

#[cfg(feature = "oauth")]
mod challenges;
mod codec;
pub(crate) mod http;
mod integers;
mod json;
mod opentool;
mod oxp;
pub(crate) mod problem;
mod wording;

use std::sync::Arc;

use axum::Router;

use codec::{Codec, Declaration};
use http::AppState;

use crate::ServerInfo;

/// Lists the protocols; the first one answers what belongs to none.
macro_rules! protocols {
    ($first:ident = $codec:ty, $(#[$doc:meta])+; $($name:ident = $others:ty, $(#[$docs:meta])+;)*) => {
        /// A protocol in which tools are served; see [`Server::protocols`](crate::Server::protocols).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Protocol {
            $(#[$doc])+
            $first,
            $($(#[$docs])+ $name,)*
        }

        /// The protocol that answers what belongs to none.
        type First = $codec;

        impl Protocol {
            /// All protocols, which is what a server serves unless it chooses.
            pub const ALL: &[Self] = &[Self::$first, $(Self::$name),*];

            fn declared(self) -> &'static Declaration {
                match self {
                    Self::$first => <$codec>::DECLARATION,
                    $(Self::$name => <$others>::DECLARATION,)*
                }
            }

            fn mount(self, router: Router<Arc<AppState>>, info: &ServerInfo) -> Router<Arc<AppState>> {
                match self {
                    Self::$first => http::mount(router, <$codec>::new(info)),
                    $(Self::$name => http::mount(router, <$others>::new(info)),)*
                }
            }
        }
    };
}

protocols! {
    Oxp = oxp::OxpCodec, /** OXP 1.0 in its header form and its `$schema` form, and its predecessor Open Tool Calling 1.0. */;
    OpenTool = opentool::OpenToolCodec, /** OpenTool 1.0.0: JSON-RPC below `/opentool`. */;
}

impl Protocol {
    /// The headers of requests whose values are no secrets.
    pub(crate) fn request_headers() -> impl Iterator<Item = &'static str> {
        let declared = Self::ALL.iter().map(|protocol| protocol.declared());
        declared
            .flat_map(|declared| declared.request_headers)
            .copied()
    }

    /// The headers of answers that say something to clients.
    pub(crate) fn answer_headers() -> impl Iterator<Item = &'static str> {
        let declared = Self::ALL.iter().map(|protocol| protocol.declared());
        let own = declared.flat_map(|declared| declared.answer_headers);
        http::ANSWER_HEADERS.iter().chain(own).copied()
    }

    /// Where calls bring tokens and secrets: a JSON pointer to a list, and the field of its items.
    pub(crate) fn secrets() -> impl Iterator<Item = (&'static str, &'static str)> {
        let declared = Self::ALL.iter().map(|protocol| protocol.declared());
        declared.flat_map(|declared| declared.secrets).copied()
    }
}

/// The routes of the protocols that are served, and of users who allow something.
pub(crate) fn router(app: Arc<AppState>, served: &[Protocol], info: &ServerInfo) -> Router {
    let router = served.iter().fold(Router::new(), |router, protocol| {
        protocol.mount(router, info)
    });
    #[cfg(feature = "oauth")]
    let router = match &app.engine.broker {
        Some(broker) => router.merge(challenges::routes(Arc::clone(&app), Arc::clone(broker))),
        None => router,
    };
    let declared: Arc<[_]> = served.iter().map(|protocol| protocol.declared()).collect();
    router
        .fallback(async move || problem::not_found(&declared))
        .method_not_allowed_fallback(async || problem::method_not_allowed())
        .with_state(app)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Protocol, http::REPLAY};

    /// The items of the template's lists of this name.
    fn lists_of(name: &str) -> Vec<BTreeSet<&'static str>> {
        let template = include_str!("../template.yaml");
        let begins = format!("{name}: [");
        let lists = template.split(&*begins).skip(1);
        let lists = lists.map(|list| list.split(']').next().unwrap());
        lists
            .map(|list| list.split(',').map(str::trim).collect())
            .collect()
    }

    #[test]
    fn web_pages_may_send_and_read_the_headers_of_all_protocols() {
        let (sent, read) = (lists_of("AllowHeaders"), lists_of("ExposeHeaders"));
        assert_eq!(
            (sent.len(), read.len()),
            (2, 2),
            "an API's and a Function URL's"
        );
        for header in Protocol::request_headers() {
            assert!(sent.iter().all(|list| list.contains(header)), "{header}");
        }
        // Browsers show one by themselves; the others are for other clients.
        let hidden = ["allow", "content-type", "www-authenticate"];
        let told = Protocol::answer_headers().filter(|it| !hidden.contains(it));
        let told: BTreeSet<_> = told.collect();
        assert!(told.contains(REPLAY.as_str()));
        assert_eq!(read, [told.clone(), told]);
    }
}
