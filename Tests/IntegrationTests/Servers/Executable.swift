import Foundation

/// The paths of programs.
enum Executable {
    /// Finds a program in `PATH`, or in the directories for servers that an ordinary user's `PATH` leaves out.
    ///
    /// - Throws: `ServerFailure` if it is not found: `make test` installs the programs that tests need.
    static func find(_ program: String) throws -> String {
        if program.hasPrefix("/") { return program }
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let directories =
            path.split(separator: ":").map(String.init) + ["/usr/local/sbin", "/usr/sbin", "/sbin"]
        for directory in directories
        where FileManager.default.isExecutableFile(atPath: "\(directory)/\(program)") {
            return "\(directory)/\(program)"
        }
        throw ServerFailure(program: program, reason: "is not installed; 'make test' installs it")
    }
}
