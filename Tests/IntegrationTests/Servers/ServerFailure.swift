/// An error of a real server, or of a program that a test runs.
struct ServerFailure: Error, CustomStringConvertible {
    /// The readable name of the program: "nginx", "openssl s_server".
    let program: String
    /// The reason of the failure.
    let reason: String
    /// The end of the program's log and of its two outputs.
    var log = ""

    var description: String {
        log.isEmpty ? "\(program): \(reason)" : "\(program): \(reason)\n--- its log ---\n\(log)"
    }
}
