//! The descriptions of scopes, in plain words, for users.
//!
//! Most users cannot tell from a scope's name what they would allow. The owner describes the scopes
//! of a provider; the most frequent ones of the built-in providers are described here. No
//! description may promise less than the scope allows.

/// Scopes, each with its description.
pub(super) type Descriptions = &'static [(&'static str, &'static str)];

/// Returns the description of a scope in these lists.
pub(super) fn find(lists: &[Descriptions], scope: &str) -> Option<&'static str> {
    // Google's and Microsoft's prefixes, which the names below leave out.
    let prefixes = [
        "https://www.googleapis.com/auth/",
        "https://graph.microsoft.com/",
    ];
    let name = prefixes.iter().find_map(|it| scope.strip_prefix(it));
    let name = name.unwrap_or(scope);
    let mut all = lists.iter().copied().flatten();
    all.find(|(it, _)| *it == name).map(|(_, text)| *text)
}

/// `OpenID` Connect Core 1.0, 5.4 and 11.
#[rustfmt::skip]
pub(super) const OPENID: Descriptions = &[
    ("openid", "Recognize you when you sign in"),
    ("profile", "See your profile, such as your name and picture"),
    ("email", "See your email address"),
    ("address", "See your postal address"),
    ("phone", "See your phone number"),
    ("offline_access", "Keep this access until you withdraw it"),
];

/// <https://developers.google.com/identity/protocols/oauth2/scopes>
#[rustfmt::skip]
pub(super) const GOOGLE: Descriptions = &[
    ("gmail.readonly", "Read your email and your Gmail settings"),
    ("gmail.send", "Send email as you"),
    ("gmail.modify", "Read, write, label and send your email, move it to the trash, and read your Gmail settings"),
    ("calendar", "See, change, share and permanently delete all calendars that you can open, and their events"),
    ("calendar.readonly", "See all calendars that you can open, and their events"),
    ("calendar.events", "See, create, change and delete the events in all calendars that you can open"),
    ("drive", "See, change, share, create and delete all files that you can open in Google Drive"),
    ("drive.readonly", "See and download all files that you can open in Google Drive"),
    ("drive.file", "See, change, share, create and delete the files in Google Drive that you use with it, and no others"),
    ("documents", "See, change, create and delete all documents that you can open in Google Docs"),
    ("spreadsheets", "See, change, create and delete all spreadsheets that you can open in Google Sheets"),
    ("contacts.readonly", "See and download your contacts"),
];

/// <https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps>
#[rustfmt::skip]
pub(super) const GITHUB: Descriptions = &[
    ("repo", "Read and change all repositories, projects, team memberships and webhooks that you can change"),
    ("public_repo", "Read and change your public repositories, those of your organizations, and your stars"),
    ("user", "Read and change your profile and email addresses, and follow and block people as you"),
    ("read:user", "Read your profile, including what is not public"),
    ("user:email", "See your email addresses"),
    ("read:org", "See your organizations, teams, memberships and the projects of your organizations"),
    ("gist", "Read, create, change and delete your gists, including secret ones"),
    ("notifications", "Read and change your notifications and the repositories that you watch"),
];

/// <https://learn.microsoft.com/en-us/graph/permissions-reference>
#[rustfmt::skip]
pub(super) const MICROSOFT: Descriptions = &[
    ("User.Read", "Sign you in, and read your profile and basic information about your company"),
    ("Mail.Read", "Read your email"),
    ("Mail.ReadWrite", "Read, write, change and delete your email, but not send it"),
    ("Mail.Send", "Send email as you"),
    ("Calendars.Read", "Read your calendars and the events in them"),
    ("Calendars.ReadWrite", "Read, create, change, share and delete your calendars and the events in them"),
    ("Files.Read", "Read your files"),
    ("Files.ReadWrite", "Read, change, share, create and delete your files"),
];

/// <https://docs.slack.dev/reference/scopes>, for user tokens.
#[rustfmt::skip]
pub(super) const SLACK: Descriptions = &[
    ("channels:read", "See the public channels of your workspace and who is in them"),
    ("channels:history", "Read messages and other content in public channels"),
    ("im:history", "Read your direct messages and other content in them"),
    ("chat:write", "Send, change and delete messages as you"),
    ("search:read", "Search all messages and files that you can see"),
    ("users:read", "See the people in your workspace"),
    ("files:read", "See the files in all channels and direct messages that you can open"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::Provider;

    #[test]
    fn each_scope_has_one_short_description_without_markup() {
        for list in [OPENID, GOOGLE, GITHUB, MICROSOFT, SLACK] {
            for (scope, text) in list {
                assert_eq!(find(&[list], scope), Some(*text), "{scope} is listed twice");
                let starts_well = text.chars().next().is_some_and(char::is_uppercase);
                let is_plain = !text.contains(['<', '>', '&', '!']) && !text.ends_with('.');
                assert!(starts_well && is_plain && text.len() <= 100, "{text}");
            }
        }
    }

    #[test]
    fn scopes_have_the_descriptions_of_their_provider_or_the_owner() {
        const EMAIL: &str = "See your email address";
        const SEND: &str = "Send email as you";
        const POST: &str = "Send, change and delete messages as you";
        let new = || Provider::new("p", "c", "S", "https://p.example/a", "https://p.example/t");
        let openid = || Provider::openid("p", "c", "S", "https://p.example");
        let (google, github) = (|| Provider::google("c", "S"), || Provider::github("c", "S"));
        let (microsoft, slack) = (|| Provider::microsoft("c", "S"), Provider::slack("c", "S"));
        for (provider, scope, expected) in [
            (google(), "https://www.googleapis.com/auth/gmail.send", SEND),
            (google(), "email", EMAIL),
            (google(), "repo", ""),
            // Not a scope of GitHub.
            (github(), "email", ""),
            (github(), "user:email", "See your email addresses"),
            (microsoft(), "https://graph.microsoft.com/Mail.Send", SEND),
            (microsoft(), "Mail.Send", SEND),
            (slack, "chat:write", POST),
            (openid(), "email", EMAIL),
            // Another provider's scope with this name may allow more.
            (new(), "email", ""),
            (new().describe_scope("email", "Read"), "email", "Read"),
            (openid().describe_scope("email", "Read"), "email", "Read"),
            (openid().describe_scope("email", ""), "email", ""),
        ] {
            let description = provider.description_of(scope).unwrap_or_default();
            assert_eq!(description, expected, "{provider:?} {scope}");
        }
    }
}
