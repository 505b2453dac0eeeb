/// A command line that cannot be carried out; nothing was sent.
struct UsageError: Error, Sendable, CustomStringConvertible {
    /// What is wrong with it.
    var description: String
    /// The exit code.
    var status: ExitStatus

    init(_ description: String, status: ExitStatus = .usage) {
        self.description = description
        self.status = status
    }

    /// Says on standard error what is wrong.
    func tell() async {
        await Console.complain("martlet: (\(status.code)) \(self)\n")
    }
}
