import Martlet

/// What `-v` says of a connection.
enum VerboseText {
    /// Where it goes to, and what TLS agreed on.
    static func connection(_ metrics: HTTPMetrics) -> String {
        guard let connection = metrics.connection else { return "" }
        guard !metrics.isConnectionReused else {
            return "* Re-using the connection to \(connection.remoteAddress)\n"
        }
        var text = "* Connected to \(connection.remoteAddress) from \(connection.localAddress)\n"
        if let tls = connection.tls {
            text += "* \(tls.version), \(tls.cipher)\(tls.isResumed ? ", resumed" : "")\n"
            text += "* ALPN: \(tls.applicationProtocol ?? "no protocol")\n"
        }
        return text
    }

    /// What the cache did, where there is one.
    static func cache(_ status: String?) -> String {
        status.map { "* Cache-Status: \($0)\n" } ?? ""
    }
}
