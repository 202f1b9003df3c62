//! The descriptions of scopes, in plain words, for users.
//!
//! Most users cannot tell from a scope's name what they would allow. The owner describes the scopes
//! of a provider; the most frequent ones of the built-in providers are described here. No
//! description may promise less than the scope allows.

/// The descriptions of a provider's scopes: the owner's, and the built-in ones.
pub(super) struct ScopeDescriptions {
    built_in: &'static BuiltIn,
    own: Vec<(String, String)>,
}

/// The built-in descriptions for a provider.
pub(super) struct BuiltIn {
    /// What the names of most of its scopes begin with; left out below.
    prefix: &'static str,
    descriptions: &'static [(&'static str, &'static str)],
}

impl ScopeDescriptions {
    pub(super) const fn new(built_in: &'static BuiltIn) -> Self {
        let own = Vec::new();
        Self { built_in, own }
    }

    /// Adds the owner's description, which replaces earlier ones.
    pub(super) fn add(&mut self, scope: String, description: String) {
        self.own.retain(|(it, _)| *it != scope);
        self.own.push((scope, description));
    }

    pub(super) fn find(&self, scope: &str) -> Option<&str> {
        let own = self.own.iter().find(|(it, _)| it == scope);
        let description = match own {
            Some((_, description)) => description,
            None => self.built_in.find(scope)?,
        };
        Some(description).filter(|it| !it.is_empty())
    }
}

impl BuiltIn {
    fn find(&self, scope: &str) -> Option<&'static str> {
        let name = scope.strip_prefix(self.prefix).unwrap_or(scope);
        let mut all = self.descriptions.iter();
        all.find(|(it, _)| *it == name).map(|(_, text)| *text)
    }
}

/// For providers with scopes of their own only.
pub(super) static NONE: BuiltIn = BuiltIn {
    prefix: "",
    descriptions: &[],
};

/// `OpenID` Connect Core 1.0, 5.4 and 11.
pub(super) static OPENID: BuiltIn = BuiltIn {
    prefix: "",
    descriptions: &[
        ("openid", "Recognize you when you sign in"),
        ("profile", "See your profile, such as your name and picture"),
        ("email", "See your email address"),
        ("address", "See your postal address"),
        ("phone", "See your phone number"),
        ("offline_access", "Keep this access until you withdraw it"),
    ],
};

/// <https://developers.google.com/identity/protocols/oauth2/scopes>
#[rustfmt::skip]
pub(super) static GOOGLE: BuiltIn = BuiltIn {
    prefix: "https://www.googleapis.com/auth/",
    descriptions: &[
        ("openid", "Recognize you when you sign in"),
        ("email", "See your email address"),
        ("userinfo.email", "See your email address"),
        ("profile", "See your profile, such as your name and picture"),
        ("userinfo.profile", "See your profile, such as your name and picture"),
        ("https://mail.google.com/", "Read, write, send and permanently delete your email"),
        ("gmail.readonly", "Read your email and your Gmail settings"),
        ("gmail.metadata", "See who your email is from and to, and what it is about, but not its text"),
        ("gmail.send", "Send email as you"),
        ("gmail.compose", "Write drafts and send email as you"),
        ("gmail.modify", "Read, write and send your email, and move it to the trash"),
        ("gmail.insert", "Add email to your mailbox"),
        ("gmail.labels", "See and change your email labels"),
        ("gmail.settings.basic", "See and change your Gmail settings and filters"),
        ("calendar", "See, change, share and permanently delete your calendars and their events"),
        ("calendar.readonly", "See your calendars and their events"),
        ("calendar.events", "See, change and delete the events in your calendars"),
        ("calendar.events.readonly", "See the events in your calendars"),
        ("calendar.freebusy", "See when you are free or busy"),
        ("drive", "See, change, create and delete all your files in Google Drive"),
        ("drive.readonly", "See and download all your files in Google Drive"),
        ("drive.file", "See, change, create and delete the files in Google Drive that you use with it, and no others"),
        ("drive.metadata", "See and change the names and details of your files in Google Drive"),
        ("drive.metadata.readonly", "See the names and details of your files in Google Drive"),
        ("drive.appdata", "Keep its own data in your Google Drive"),
        ("documents", "See, change, create and delete all your documents in Google Docs"),
        ("documents.readonly", "See all your documents in Google Docs"),
        ("spreadsheets", "See, change, create and delete all your spreadsheets in Google Sheets"),
        ("spreadsheets.readonly", "See all your spreadsheets in Google Sheets"),
        ("presentations", "See, change, create and delete all your presentations in Google Slides"),
        ("presentations.readonly", "See all your presentations in Google Slides"),
        ("contacts", "See, change, download and permanently delete your contacts"),
        ("contacts.readonly", "See and download your contacts"),
        ("tasks", "See, change, create and delete your tasks"),
        ("tasks.readonly", "See your tasks"),
    ],
};

/// <https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps>
#[rustfmt::skip]
pub(super) static GITHUB: BuiltIn = BuiltIn {
    prefix: "",
    descriptions: &[
        ("repo", "Read and change everything in all your repositories, public and private"),
        ("public_repo", "Read and change everything in your public repositories"),
        ("repo:status", "Read and change the status of commits in your repositories, also in private ones"),
        ("repo:invite", "Accept or decline invitations to repositories"),
        ("security_events", "Read and change the security alerts of your repositories"),
        ("delete_repo", "Delete your repositories"),
        ("workflow", "Add and change workflows of GitHub Actions"),
        ("admin:repo_hook", "Add, change and delete the webhooks of your repositories"),
        ("user", "Read and change your profile, see your email addresses, and follow people as you"),
        ("read:user", "Read your profile, also what is not public"),
        ("user:email", "See your email addresses"),
        ("user:follow", "Follow and unfollow people as you"),
        ("read:org", "See your organizations, teams and memberships"),
        ("write:org", "See your organizations and teams, and change memberships"),
        ("admin:org", "Manage your organizations, teams and memberships"),
        ("gist", "Create and change your gists"),
        ("notifications", "Read and change your notifications and the repositories that you watch"),
        ("project", "Read and change your projects"),
        ("read:project", "See your projects"),
        ("write:discussion", "Read and write discussions of your teams"),
        ("read:discussion", "Read discussions of your teams"),
        ("read:packages", "Download packages from GitHub Packages"),
        ("write:packages", "Download and publish packages in GitHub Packages"),
        ("delete:packages", "Delete packages from GitHub Packages"),
        ("read:public_key", "See the SSH keys of your account"),
        ("admin:public_key", "See, add and delete the SSH keys of your account"),
    ],
};

/// <https://learn.microsoft.com/en-us/graph/permissions-reference>
#[rustfmt::skip]
pub(super) static MICROSOFT: BuiltIn = BuiltIn {
    prefix: "https://graph.microsoft.com/",
    descriptions: &[
        ("openid", "Recognize you when you sign in"),
        ("email", "See your email address"),
        ("profile", "See your profile, such as your name and picture"),
        ("offline_access", "Keep this access until you withdraw it"),
        ("User.Read", "Sign you in and read your profile"),
        ("User.ReadBasic.All", "See the names and email addresses of everyone in your organization"),
        ("Mail.Read", "Read your email"),
        ("Mail.ReadWrite", "Read, write, change and delete your email, but not send it"),
        ("Mail.Send", "Send email as you"),
        ("Calendars.Read", "Read your calendars"),
        ("Calendars.ReadWrite", "Read, change and delete the events in your calendars"),
        ("Contacts.Read", "Read your contacts"),
        ("Contacts.ReadWrite", "Read, change and delete your contacts"),
        ("Files.Read", "Read your files"),
        ("Files.Read.All", "Read all files that you can open"),
        ("Files.ReadWrite", "Read, change, create and delete your files"),
        ("Files.ReadWrite.All", "Read, change, create and delete all files that you can open"),
        ("Sites.Read.All", "Read the documents and lists of all SharePoint sites that you can open"),
        ("Tasks.Read", "Read your tasks"),
        ("Tasks.ReadWrite", "Read, change, create and delete your tasks"),
        ("Notes.Read", "Read your OneNote notebooks"),
        ("Notes.ReadWrite", "Read and change your OneNote notebooks"),
        ("Chat.Read", "Read your chats in Teams"),
        ("Chat.ReadWrite", "Read your chats in Teams and write in them as you"),
        ("ChatMessage.Send", "Write in your chats in Teams as you"),
    ],
};

/// <https://docs.slack.dev/reference/scopes>, for user tokens.
#[rustfmt::skip]
pub(super) static SLACK: BuiltIn = BuiltIn {
    prefix: "",
    descriptions: &[
        ("channels:read", "See the public channels of your workspace"),
        ("channels:history", "Read messages in public channels"),
        ("channels:write", "Create, change, join and leave public channels as you"),
        ("groups:read", "See your private channels"),
        ("groups:history", "Read messages in your private channels"),
        ("im:read", "See who you have direct messages with"),
        ("im:history", "Read your direct messages"),
        ("mpim:read", "See your group direct messages and who is in them"),
        ("mpim:history", "Read your group direct messages"),
        ("chat:write", "Send messages as you"),
        ("search:read", "Search your messages and files"),
        ("users:read", "See the people in your workspace"),
        ("users:read.email", "See the email addresses of the people in your workspace"),
        ("users.profile:read", "See the profiles of the people in your workspace"),
        ("users.profile:write", "Change your profile and your status"),
        ("files:read", "See the files in your channels and direct messages"),
        ("files:write", "Upload, change and delete files as you"),
        ("reactions:read", "See the reactions to messages"),
        ("reactions:write", "Add and remove reactions as you"),
        ("reminders:read", "See your reminders"),
        ("reminders:write", "Add, complete and delete your reminders"),
        ("team:read", "See the name and the icon of your workspace"),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oauth::Provider;

    #[test]
    fn each_scope_has_one_short_description_without_markup() {
        for built_in in [&NONE, &OPENID, &GOOGLE, &GITHUB, &MICROSOFT, &SLACK] {
            for (scope, text) in built_in.descriptions {
                assert_eq!(built_in.find(scope), Some(*text), "{scope} is listed twice");
                let starts_well = text.chars().next().is_some_and(char::is_uppercase);
                let is_plain = !text.contains(['<', '>', '&', '!']) && !text.ends_with('.');
                assert!(starts_well && is_plain && text.len() <= 100, "{text}");
            }
        }
    }

    #[test]
    fn scopes_have_the_descriptions_of_their_provider_or_the_owner() {
        let new = || Provider::new("p", "c", "S", "https://p.example/a", "https://p.example/t");
        let openid = || Provider::openid("p", "c", "S", "https://p.example");
        let (google, github) = (Provider::google("c", "S"), Provider::github("c", "S"));
        let gmail = "https://www.googleapis.com/auth/gmail.send";
        let graph = "https://graph.microsoft.com/Mail.Send";
        let email = "See your email address";
        for (provider, scope, expected) in [
            (&google, gmail, Some("Send email as you")),
            (&google, "email", Some(email)),
            (&google, "repo", None),
            (&github, "gist", Some("Create and change your gists")),
            // Not a scope of GitHub.
            (&github, "email", None),
            (
                &Provider::microsoft("c", "S"),
                graph,
                Some("Send email as you"),
            ),
            (
                &Provider::microsoft("c", "S"),
                "Mail.Send",
                Some("Send email as you"),
            ),
            (
                &Provider::slack("c", "S"),
                "chat:write",
                Some("Send messages as you"),
            ),
            (&openid(), "email", Some(email)),
            // Another provider's scope with this name may allow more.
            (&new(), "email", None),
            (
                &new().describe_scope("email", "Read"),
                "email",
                Some("Read"),
            ),
            (
                &openid().describe_scope("email", "Read"),
                "email",
                Some("Read"),
            ),
            (&openid().describe_scope("email", ""), "email", None),
            (
                &new()
                    .describe_scope("email", "Read")
                    .describe_scope("email", "Write"),
                "email",
                Some("Write"),
            ),
        ] {
            assert_eq!(
                provider.description_of(scope),
                expected,
                "{provider:?} {scope}"
            );
        }
    }
}
