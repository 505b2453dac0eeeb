import Foundation

/// The program `martlet`, as it was built together with these tests.
enum MartletProgram {
    /// Where it is; beside the test bundle.
    static let path = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().appendingPathComponent("martlet").path

    /// Whether it is there: building the tests of one target alone leaves it out.
    static let isBuilt = FileManager.default.isExecutableFile(atPath: path)

    /// The sanitizer that the tests run under, as `Scripts/sanitize.sh` says.
    private static let sanitizer = ProcessInfo.processInfo.environment["MARTLET_SANITIZED"]
    /// Whether there is one.
    static let isSanitized = sanitizer != nil
    /// Whether it is that of threads, which keeps its own memory in files, and so dies of a limit on their size.
    static let isThreadSanitized = sanitizer == "thread"
}
