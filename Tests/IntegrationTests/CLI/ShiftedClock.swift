import Foundation
import MartletTesting
import Testing

/// A wall clock for programs that can be set while they run, by `libfaketime`. Monotonic clocks are not affected.
struct ShiftedClock: Sendable {
    private let path: String

    /// Makes a clock whose setting is a file in a directory.
    init(in directory: TemporaryDirectory) {
        path = directory.appending("clock")
    }

    /// Sets the clock to an offset from the true time in seconds, such as `+86400`; it applies immediately to all
    /// programs.
    func set(_ shift: String) throws {
        try Data("\(shift)\n".utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
    }

    /// The environment variables that make a program use the clock.
    var environment: [String] {
        get throws {
            let directories = try FileManager.default.contentsOfDirectory(atPath: "/usr/lib").sorted()
            let library = try #require(
                directories.map { "/usr/lib/\($0)/faketime/libfaketime.so.1" }
                    .first { FileManager.default.fileExists(atPath: $0) },
                "Scripts/install.sh test installs it")
            return [
                "LD_PRELOAD=\(library)", "FAKETIME_TIMESTAMP_FILE=\(path)", "FAKETIME_NO_CACHE=1",
                "FAKETIME_DONT_FAKE_MONOTONIC=1",
            ]
        }
    }
}
