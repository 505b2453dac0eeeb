import Martlet

/// How a request of a batch wants its connection opened.
struct BatchConnection: Hashable, Sendable {
    /// Other places to connect to.
    var redirections: [ConnectRedirection] = []
    /// A file of authorities that alone are trusted.
    var authorityFile: String?

    /// `host:port:address:port`.
    static func redirection(_ text: String) throws(BatchFault) -> ConnectRedirection {
        do throws(UsageError) {
            return try OptionValues.connectTo(text)
        } catch {
            throw BatchFault(.other, "“connect_to”: “\(text)” is not host:port:address:port")
        }
    }
}
