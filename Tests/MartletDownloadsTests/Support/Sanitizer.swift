import Foundation

/// The sanitizer that the tests run under, as `Scripts/sanitize.sh` says.
enum Sanitizer {
    private static let name = ProcessInfo.processInfo.environment["MARTLET_SANITIZED"]
    /// Whether there is one: memory is another thing then.
    static let isInUse = name != nil
    /// Whether it is that of threads, which keeps its own memory in files, and so dies of a limit on their size.
    static let isOfThreads = name == "thread"
}
