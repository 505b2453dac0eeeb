import SystemPackage

/// Output that could not be written.
struct OutputError: Error, Sendable, CustomStringConvertible {
    /// Where to.
    var name: String
    /// Why.
    var reason: String
    /// Whether it was that nobody reads any more, which is no cause for words.
    var isClosedPipe: Bool
    /// Whether it was standard output, which transfers that follow have as well.
    var isStandardOutput = false

    init(name: String, reason: String) {
        self.name = name
        self.reason = reason
        isClosedPipe = false
    }

    init(name: String, _ error: any Error) {
        self.name = name
        reason = "\(error)"
        isClosedPipe = (error as? Errno) == .brokenPipe
    }

    /// Standard output, which failed for this reason.
    static func standardOutput(_ error: any Error) -> OutputError {
        var failure = OutputError(name: "standard output", error)
        failure.isStandardOutput = true
        return failure
    }

    /// Where to, and why not.
    var description: String { "could not write to \(name): \(reason)" }
}
