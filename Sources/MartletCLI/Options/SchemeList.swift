import Martlet

/// Lists of schemes as curl's `--proto` and `--proto-redir` write them.
///
/// Elements between commas, from left to right: `=name` for that alone, `+name` or `name` for that as well, `-name` for not
/// that. `all` is all schemes.
enum SchemeList {
    /// Applies a list to what was allowed before.
    /// - Parameter place: What the message names where an element cannot be read.
    static func applying(
        _ text: String, to schemes: Set<HTTPURL.Scheme>, _ place: String
    ) throws(UsageError) -> Set<HTTPURL.Scheme> {
        var schemes = schemes
        for element in text.split(separator: ",") {
            let sign = element.first.flatMap { "=+-".contains($0) ? $0 : nil }
            let name = (sign == nil ? element : element.dropFirst()).lowercased()
            let named: Set<HTTPURL.Scheme>
            if name == "all" {
                named = Set(HTTPURL.Scheme.allCases)
            } else if let scheme = HTTPURL.Scheme(rawValue: name) {
                named = [scheme]
            } else if others.contains(name) {
                // Known to curl, and never followed here: nothing to add, and nothing to take away.
                named = []
            } else {
                throw UsageError("\(place): “\(element)” is no scheme with =, + or - before it")
            }
            switch sign {
            case "=": schemes = named
            case "-": schemes.subtract(named)
            default: schemes.formUnion(named)
            }
        }
        return schemes
    }

    /// Schemes that curl may know besides.
    private static let others: Set<String> = [
        "dict", "file", "ftp", "ftps", "gopher", "gophers", "imap", "imaps", "ldap", "ldaps", "mqtt", "pop3",
        "pop3s", "rtmp", "rtmpe", "rtmps", "rtmpt", "rtmpte", "rtmpts", "rtsp", "scp", "sftp", "smb", "smbs",
        "smtp", "smtps", "telnet", "tftp", "ws", "wss",
    ]
}
