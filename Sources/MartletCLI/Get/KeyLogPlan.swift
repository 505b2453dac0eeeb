import MartletTransport

/// The file that `SSLKEYLOGFILE` names for the secrets of connections. As in curl, one that cannot be written to fails no
/// request.
enum KeyLogPlan {
    private static var name: String? {
        Environment["SSLKEYLOGFILE"].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The file; `nil` for none, and for one that cannot be appended to.
    static var file: String? {
        name.flatMap { KeyLogFile.fault(at: $0) == nil ? $0 : nil }
    }

    /// Tells of a file that cannot be appended to.
    /// - Parameter asJSON: Whether programs read what is told.
    static func warn(asJSON: Bool = false) async {
        guard let name, let fault = KeyLogFile.fault(at: name) else { return }
        let message = "SSLKEYLOGFILE: nothing is kept in “\(name)”: \(fault)"
        let line = asJSON ? DownloadJSON.warning(message) : "martlet: warning: \(message)"
        await Console.complain("\(line)\n")
    }
}
