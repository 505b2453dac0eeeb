import Foundation

/// The program `martlet` that was built with these tests.
enum MartletProgram {
    /// The path of the program, next to the test bundle.
    static let path = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().appendingPathComponent("martlet").path

    /// Whether the program exists: building the tests of one target leaves it out.
    static let isBuilt = FileManager.default.isExecutableFile(atPath: path)

    /// The sanitizer that the tests run under, from `Scripts/sanitize.sh`.
    private static let sanitizer = ProcessInfo.processInfo.environment["MARTLET_SANITIZED"]
    /// Whether a sanitizer is in use.
    static let isSanitized = sanitizer != nil
    /// Whether it is the thread sanitizer, which keeps its memory in files and fails under a limit on file sizes.
    static let isThreadSanitized = sanitizer == "thread"
}
