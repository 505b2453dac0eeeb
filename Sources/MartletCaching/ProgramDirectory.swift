import MartletTransport
public import SystemPackage

/// The directories of this program below the directories of its user (XDG Base Directory Specification).
package enum ProgramDirectory {
    /// Returns `PROGRAM/NAME` below the directory in a variable, or else below `$HOME`. Relative paths are ignored.
    package static func path(_ name: String, below variable: String, orHome parts: [String]) -> FilePath {
        let program = FilePath(CommandLine.arguments.first ?? "").lastComponent?.string ?? "program"
        return path(name, below: variable, orHome: parts, program: program) { ProcessEnvironment.value(of: $0) }
    }

    /// Returns the directory for a program's name and environment.
    package static func path(
        _ name: String, below variable: String, orHome parts: [String], program: String, value: (String) -> String?
    ) -> FilePath {
        func absolute(_ variable: String) -> FilePath? {
            value(variable).flatMap { $0.hasPrefix("/") ? FilePath($0) : nil }
        }
        var path = absolute(variable) ?? parts.reduce(absolute("HOME") ?? "/") { $0.appending($1) }
        path.append(program)
        path.append(name)
        return path
    }
}

extension ResponseCache {
    /// The default directory of this program: `NAME/responses`, with the name of the program, in `$XDG_CACHE_HOME`, or
    /// in `~/.cache` if that is not set (XDG Base Directory Specification).
    public static var defaultDirectory: FilePath {
        ProgramDirectory.path("responses", below: "XDG_CACHE_HOME", orHome: [".cache"])
    }
}
