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
    /// The prefix of most of its scopes, which the names below leave out.
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
        ("https://mail.google.com/", "Read, write, send and permanently delete your email, and read your Gmail settings"),
        ("gmail.readonly", "Read your email and your Gmail settings"),
        ("gmail.metadata", "See the labels and headers of your email, such as sender, recipients and subject, but not its text"),
        ("gmail.send", "Send email as you"),
        ("gmail.compose", "Read, write and delete your drafts, and send email as you"),
        ("gmail.modify", "Read, write, label and send your email, move it to the trash, and read your Gmail settings"),
        ("gmail.insert", "Add email to your mailbox"),
        ("gmail.labels", "See, create, change and delete your email labels"),
        ("gmail.settings.basic", "See and change your Gmail settings and filters"),
        ("calendar", "See, change, share and permanently delete all calendars that you can open, and their events"),
        ("calendar.readonly", "See all calendars that you can open, and their events"),
        ("calendar.events", "See, create, change and delete the events in all calendars that you can open"),
        ("calendar.events.readonly", "See the events in all calendars that you can open"),
        ("calendar.freebusy", "See when you, and people whose calendars you can see, are free or busy"),
        ("drive", "See, change, share, create and delete all files that you can open in Google Drive"),
        ("drive.readonly", "See and download all files that you can open in Google Drive"),
        ("drive.file", "See, change, share, create and delete the files in Google Drive that you use with it, and no others"),
        ("drive.metadata", "See and change the names and details of all files that you can open in Google Drive"),
        ("drive.metadata.readonly", "See the names and details of all files that you can open in Google Drive"),
        ("drive.appdata", "Keep its own data in your Google Drive"),
        ("documents", "See, change, create and delete all documents that you can open in Google Docs"),
        ("documents.readonly", "See all documents that you can open in Google Docs"),
        ("spreadsheets", "See, change, create and delete all spreadsheets that you can open in Google Sheets"),
        ("spreadsheets.readonly", "See all spreadsheets that you can open in Google Sheets"),
        ("presentations", "See, change, create and delete all presentations that you can open in Google Slides"),
        ("presentations.readonly", "See all presentations that you can open in Google Slides"),
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
        ("repo", "Read and change all repositories, projects, team memberships and webhooks that you can change"),
        ("public_repo", "Read and change your public repositories, those of your organizations, and your stars"),
        ("repo:status", "Read and change the status of commits in your repositories, including private ones"),
        ("repo:invite", "Accept or decline invitations to repositories"),
        ("security_events", "Read and change the security alerts of all repositories that you can change"),
        ("delete_repo", "Delete all repositories that you administer"),
        ("workflow", "Add and change workflows of GitHub Actions"),
        ("admin:repo_hook", "See, add, change and delete the webhooks of all repositories that you administer"),
        ("user", "Read and change your profile and email addresses, and follow and block people as you"),
        ("read:user", "Read your profile, including what is not public"),
        ("user:email", "See your email addresses"),
        ("user:follow", "Follow and unfollow people as you"),
        ("read:org", "See your organizations, teams, memberships and the projects of your organizations"),
        ("write:org", "See your organizations and teams, and change memberships and projects"),
        ("admin:org", "Manage your organizations, teams, projects and memberships"),
        ("gist", "Read, create, change and delete your gists, including secret ones"),
        ("notifications", "Read and change your notifications and the repositories that you watch"),
        ("project", "Read and change your projects and those of your organizations"),
        ("read:project", "See your projects and those of your organizations"),
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
        ("User.Read", "Sign you in, and read your profile and basic information about your company"),
        ("User.ReadBasic.All", "See the names, email addresses and photos of everyone in your organization"),
        ("Mail.Read", "Read your email"),
        ("Mail.ReadWrite", "Read, write, change and delete your email, but not send it"),
        ("Mail.Send", "Send email as you"),
        ("Calendars.Read", "Read your calendars and the events in them"),
        ("Calendars.ReadWrite", "Read, create, change, share and delete your calendars and the events in them"),
        ("Contacts.Read", "Read your contacts"),
        ("Contacts.ReadWrite", "Read, create, change and delete your contacts"),
        ("Files.Read", "Read your files"),
        ("Files.Read.All", "Read all files that you can open"),
        ("Files.ReadWrite", "Read, change, share, create and delete your files"),
        ("Files.ReadWrite.All", "Read, change, share, create and delete all files that you can open"),
        ("Sites.Read.All", "Read the documents and lists of all SharePoint sites that you can open"),
        ("Tasks.Read", "Read your tasks, including those shared with you"),
        ("Tasks.ReadWrite", "Read, change, create and delete your tasks, including those shared with you"),
        ("Notes.Read", "Read your OneNote notebooks"),
        ("Notes.ReadWrite", "Read, change and share your OneNote notebooks"),
        ("Chat.Read", "Read your chats in Teams"),
        ("Chat.ReadWrite", "Read your chats in Teams, start chats, change their members, and write as you"),
        ("ChatMessage.Send", "Write in your chats in Teams as you"),
    ],
};

/// <https://docs.slack.dev/reference/scopes>, for user tokens.
#[rustfmt::skip]
pub(super) static SLACK: BuiltIn = BuiltIn {
    prefix: "",
    descriptions: &[
        ("channels:read", "See the public channels of your workspace and who is in them"),
        ("channels:history", "Read messages and other content in public channels"),
        ("channels:write", "Create, change and archive public channels, and invite and remove people, as you"),
        ("groups:read", "See your private channels and who is in them"),
        ("groups:history", "Read messages and other content in your private channels"),
        ("im:read", "See who you have direct messages with"),
        ("im:history", "Read your direct messages and other content in them"),
        ("mpim:read", "See your group direct messages and who is in them"),
        ("mpim:history", "Read your group direct messages and other content in them"),
        ("chat:write", "Send, change and delete messages as you"),
        ("search:read", "Search all messages and files that you can see"),
        ("users:read", "See the people in your workspace"),
        ("users:read.email", "See the email addresses of the people in your workspace"),
        ("users.profile:read", "See the profiles of the people in your workspace"),
        ("users.profile:write", "Change your profile and status (if you are an administrator, also those of others)"),
        ("files:read", "See the files in all channels and direct messages that you can open"),
        ("files:write", "Upload, change, share and delete files as you"),
        ("reactions:read", "See the reactions to messages"),
        ("reactions:write", "Add and remove reactions as you"),
        ("reminders:read", "See your reminders"),
        ("reminders:write", "Add, complete and delete your reminders"),
        ("team:read", "See the name, email domain and icon of your workspace"),
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
            (
                &github,
                "gist",
                Some("Read, create, change and delete your gists, including secret ones"),
            ),
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
                Some("Send, change and delete messages as you"),
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
