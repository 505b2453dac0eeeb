import SystemPackage

/// Output that could not be written.
struct OutputError: Error, Sendable, CustomStringConvertible {
    /// Where to.
    var name: String
    /// Why.
    var reason: String
    /// Whether it was that nobody reads any more, which is no cause for words.
    var isClosedPipe: Bool

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

    /// Where to, and why not.
    var description: String { "could not write to \(name): \(reason)" }
}
