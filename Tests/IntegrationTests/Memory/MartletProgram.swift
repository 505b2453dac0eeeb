import Foundation

/// The program `martlet`, as it was built together with these tests.
enum MartletProgram {
    /// Where it is; beside the test bundle.
    static let path = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().appendingPathComponent("martlet").path

    /// Whether it is there: building the tests of one target alone leaves it out.
    static let isBuilt = FileManager.default.isExecutableFile(atPath: path)

    /// Whether the tests run under a sanitizer, as `Scripts/sanitize.sh` says.
    static let isSanitized = ProcessInfo.processInfo.environment["MARTLET_SANITIZED"] != nil
}
