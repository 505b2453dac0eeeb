import Foundation

/// The sanitizer that the tests run under, from `Scripts/sanitize.sh`.
enum Sanitizer {
    private static let name = ProcessInfo.processInfo.environment["MARTLET_SANITIZED"]
    /// Whether a sanitizer is in use, which changes the use of memory.
    static let isInUse = name != nil
    /// Whether it is the thread sanitizer, which keeps its memory in files and fails under a limit on file sizes.
    static let isOfThreads = name == "thread"
}
