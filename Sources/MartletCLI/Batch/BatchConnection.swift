import Martlet

/// What a request of a batch wants of its session: how connections are opened, and whether there are cookies.
struct BatchConnection: Hashable, Sendable {
    /// Other places to connect to.
    var redirections: [ConnectRedirection] = []
    /// A file of authorities that alone are trusted.
    var authorityFile: String?
    /// Whether the session's cookies are sent, and those that come kept; without them, requests take a shorter way.
    var usesCookies = false

    /// `host:port:address:port`.
    static func redirection(_ text: String) throws(BatchFault) -> ConnectRedirection {
        do throws(UsageError) {
            return try OptionValues.connectTo(text)
        } catch {
            throw BatchFault(.other, "“connect_to”: “\(text)” is not host:port:address:port")
        }
    }
}
