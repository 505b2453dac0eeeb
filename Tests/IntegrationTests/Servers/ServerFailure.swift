/// Why a real server, or a program run beside it, did not do what a test needed of it.
struct ServerFailure: Error, CustomStringConvertible {
    /// The program, as a reader knows it: "nginx", "openssl s_server".
    let program: String
    /// What went wrong.
    let reason: String
    /// The end of what the program wrote to its log and its two outputs.
    var log = ""

    var description: String {
        log.isEmpty ? "\(program): \(reason)" : "\(program): \(reason)\n--- its log ---\n\(log)"
    }
}
