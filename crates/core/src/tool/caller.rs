//! The caller of a request, after authentication.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// The caller of a request, identified by its credentials or by the platform that checked them.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub enum Caller {
    /// Any caller: no credentials are required.
    Anyone,
    /// The holder of an API key.
    ApiKey {
        /// The id of the secret that holds the key; the first id if the caller has several.
        id: Arc<str>,
    },
    /// The holder of a JWT.
    Jwt {
        /// The id of the secret that signed it; the first id if the signer has several.
        id: Arc<str>,
        /// Its `sub` claim.
        subject: Option<String>,
        /// The scopes in its `scope` or `scp` claim.
        scopes: Vec<String>,
    },
    /// The holder of an access token of an identity provider, verified by this server or by an API
    /// Gateway authorizer.
    AccessToken(Arc<AccessToken>),
    /// An AWS principal authenticated by IAM, for a server that requires no credentials itself.
    Iam {
        /// Its ARN, followed by a space and the id of its Cognito identity, if it has one.
        principal: Arc<str>,
    },
    /// A principal that IAM allows to invoke the function itself, with an event that is a call.
    /// Lambda does not say which.
    Invoker,
    /// An `AgentCore` Gateway that has the function as a Lambda target, and that IAM allows to invoke
    /// it.
    AgentCore {
        /// The gateway's id.
        gateway: Arc<str>,
        /// The target's id.
        target: Arc<str>,
    },
    /// A caller authenticated by an API Gateway authorizer, for a server that requires no
    /// credentials itself.
    Authorizer {
        /// `jwt ISSUER SUBJECT`, `client ISSUER CLIENT_ID`, `lambda PRINCIPAL`, or `hash …` of an
        /// authorizer's result that names no principal. Spaces in the parts become `%20`.
        principal: Arc<str>,
    },
}

/// The facts about the holder of an access token (RFC 9068, section 2.2).
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AccessToken {
    /// The identity provider that issued the token: its `iss` claim.
    pub issuer: Arc<str>,
    /// The user who signed in: the `sub` claim, or the claim that the server's owner chose. `None`
    /// for a token without this claim.
    pub user: Option<String>,
    /// The `sub` claim, which tells holders without a `user` apart.
    pub subject: Option<String>,
    /// The client that the token was issued to.
    pub client_id: Option<String>,
    /// The scopes in the `scope` or `scp` claim.
    pub scopes: Vec<String>,
    /// The user's groups: the `groups` or `cognito:groups` claim, or the claim that the server's
    /// owner chose. If API Gateway has verified the token, each claim is one text, such as `[a b]`,
    /// because API Gateway does not say where a group ends.
    pub groups: Vec<String>,
}

impl AccessToken {
    /// Creates the facts about a token of which only the issuer is known.
    pub fn of(issuer: Arc<str>) -> Self {
        Self {
            issuer,
            user: None,
            subject: None,
            client_id: None,
            scopes: Vec::new(),
            groups: Vec::new(),
        }
    }
}

impl Caller {
    /// Returns the namespace of the caller's user ids, call ids and grants: equal user ids in two
    /// namespaces are two users. A tool that stores data for users stores it by namespace and user
    /// id, unless its server has only one kind of caller.
    ///
    /// All users of one JWT signer, of one issuer of access tokens, or of one `AgentCore` Gateway share
    /// a namespace. Empty if callers are not distinguished.
    #[must_use]
    pub fn namespace(&self) -> String {
        match self {
            Self::Anyone => String::new(),
            Self::Jwt { id, .. } => format!("jwt {id}"),
            Self::AccessToken(token) => format!("token {}", token.issuer),
            Self::AgentCore { gateway, .. } => format!("agentcore {gateway}"),
            named => named.to_string(),
        }
    }

    /// Returns the texts that tell callers apart: two callers with equal texts are one.
    pub fn identity(&self) -> Vec<Option<&str>> {
        match self {
            Self::Anyone => vec![Some("anyone"), None],
            Self::ApiKey { id } => vec![Some("key"), Some(&**id)],
            Self::Jwt { id, subject, .. } => vec![Some("jwt"), Some(&**id), subject.as_deref()],
            Self::AccessToken(token) => {
                let mut texts = vec![Some("token"), Some(&*token.issuer), token.user.as_deref()];
                // Programs without a user call with their client's own token.
                if token.user.is_none() {
                    texts.extend([token.client_id.as_deref(), token.subject.as_deref()]);
                }
                texts
            }
            Self::Iam { principal } => vec![Some("iam"), Some(&**principal)],
            Self::Invoker => vec![Some("invoker"), None],
            Self::AgentCore { gateway, target } => {
                vec![Some("agentcore"), Some(&**gateway), Some(&**target)]
            }
            Self::Authorizer { principal } => vec![Some("authorizer"), Some(&**principal)],
        }
    }

    /// Returns the scopes that the caller's token has. `None` if the caller has no token, and
    /// therefore no scopes restrict it.
    #[must_use]
    pub fn scopes(&self) -> Option<&[String]> {
        match self {
            Self::Jwt { scopes, .. } => Some(scopes),
            Self::AccessToken(token) => Some(&token.scopes),
            _ => None,
        }
    }

    /// Returns the groups of the user who signed in; empty for callers without an access token.
    #[must_use]
    pub fn groups(&self) -> &[String] {
        match self {
            Self::AccessToken(token) => &token.groups,
            _ => &[],
        }
    }
}

/// A rule about callers, for [`Tool::allow`](crate::Tool::allow).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerRule {
    /// The members of a [group](Caller::groups).
    Group(String),
    /// A user, as tools get it, whom the credentials name.
    User(String),
    /// The holder of an API key, or of JWTs that a secret signs: the id of the secret, or the first one
    /// of the caller's.
    Caller(String),
    /// A text that is not a rule, and applies to nobody.
    Unknown(String),
}

impl CallerRule {
    /// Parses `group:NAME`, `user:ID` or `caller:SECRET_ID`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let (kind, value) = text.split_once(':').unwrap_or_default();
        let value = value.trim().to_owned();
        match kind.trim() {
            "group" if !value.is_empty() => Self::Group(value),
            "user" if !value.is_empty() => Self::User(value),
            "caller" if !value.is_empty() => Self::Caller(value),
            _ => Self::Unknown(text.trim().to_owned()),
        }
    }

    /// Returns true if the rule applies to a caller whose credentials name `user`.
    #[must_use]
    pub fn applies_to(&self, caller: &Caller, user: Option<&str>) -> bool {
        match (self, caller) {
            (Self::Group(group), caller) => caller.groups().contains(group),
            (Self::User(name), _) => user == Some(name),
            (Self::Caller(name), Caller::ApiKey { id } | Caller::Jwt { id, .. }) => **id == **name,
            (Self::Caller(_) | Self::Unknown(_), _) => false,
        }
    }
}

impl fmt::Display for CallerRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Group(name) => write!(f, "group:{name}"),
            Self::User(name) => write!(f, "user:{name}"),
            Self::Caller(name) => write!(f, "caller:{name}"),
            Self::Unknown(text) => f.write_str(text),
        }
    }
}

/// For logs: `anyone`, `key ID`, `jwt ID SUBJECT`, `token ISSUER USER`, `iam ARN`, `invoker`,
/// `agentcore GATEWAY TARGET`, `authorizer PRINCIPAL`.
impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anyone => f.write_str("anyone"),
            Self::ApiKey { id } => write!(f, "key {id}"),
            Self::Jwt { id, subject, .. } => match subject {
                Some(subject) => write!(f, "jwt {id} {subject}"),
                None => write!(f, "jwt {id}"),
            },
            Self::AccessToken(token) => {
                write!(f, "token {}", token.issuer)?;
                match (&token.user, &token.client_id) {
                    (Some(user), _) => write!(f, " {user}"),
                    (None, Some(client)) => write!(f, " client {client}"),
                    (None, None) => Ok(()),
                }
            }
            Self::Invoker => f.write_str("invoker"),
            Self::AgentCore { gateway, target } => write!(f, "agentcore {gateway} {target}"),
            Self::Iam { principal } => write!(f, "iam {principal}"),
            Self::Authorizer { principal } => write!(f, "authorizer {principal}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the caller of a text: its kind, and the words of its fields; `-` is an unknown user.
    fn caller(text: &str) -> Caller {
        let words: Vec<_> = text.split(' ').collect();
        let some = |word: &str| (word != "-").then(|| word.to_owned());
        let word = |at: usize| Arc::from(words[at]);
        match words[0] {
            "key" => Caller::ApiKey { id: word(1) },
            "jwt" => Caller::Jwt {
                id: word(1),
                subject: some(words[2]),
                scopes: Vec::new(),
            },
            "token" => Caller::AccessToken(Arc::new(AccessToken {
                user: some(words[2]),
                client_id: some(words[3]),
                ..AccessToken::of(word(1))
            })),
            "agentcore" => Caller::AgentCore {
                gateway: word(1),
                target: word(2),
            },
            "iam" => Caller::Iam { principal: word(1) },
            "authorizer" => Caller::Authorizer { principal: word(1) },
            "invoker" => Caller::Invoker,
            _ => Caller::Anyone,
        }
    }

    /// Callers of one namespace share users and grants; those of one identity also share replays and
    /// tasks.
    #[test]
    fn callers_share_a_namespace_or_even_an_identity() {
        for (one, other, same_namespace, same_identity) in [
            ("key a", "key a", true, true),
            ("key a", "key b", false, false),
            ("jwt a x", "jwt a x", true, true),
            ("jwt a x", "jwt a y", true, false),
            ("jwt a x", "jwt a -", true, false),
            ("jwt a x", "jwt b x", false, false),
            // Whichever client the user calls with.
            ("token i x c", "token i x d", true, true),
            ("token i x c", "token i y c", true, false),
            ("token i x c", "token j x c", false, false),
            ("token i - c", "token i - c", true, true),
            ("token i - c", "token i - d", true, false),
            ("token i - c", "token i c c", true, false),
            ("agentcore g t", "agentcore g t", true, true),
            ("agentcore g t", "agentcore g u", true, false),
            ("agentcore g t", "agentcore h t", false, false),
            ("key a", "jwt a -", false, false),
            ("iam a", "authorizer a", false, false),
            ("anyone", "invoker", false, false),
        ] {
            let [one, other] = [one, other].map(caller);
            let shared = [
                one.namespace() == other.namespace(),
                one.identity() == other.identity(),
            ];
            assert_eq!(shared, [same_namespace, same_identity], "{one:?} {other:?}");
        }
    }

    /// Logs and audits tell all kinds of callers apart by the first word.
    #[test]
    fn each_kind_of_caller_has_its_own_name() {
        for (text, name) in [
            ("token i x c", "token i x"),
            ("token i - c", "token i client c"),
            ("jwt a x", "jwt a x"),
            ("jwt a -", "jwt a"),
            ("agentcore g t", "agentcore g t"),
            ("key a", "key a"),
        ] {
            assert_eq!(caller(text).to_string(), name);
        }
    }
}
