import FoundationEssentials
public import SystemPackage

extension OfflineQueue {
    /// Where the requests of this program are kept unless it is said otherwise: in the folder `NAME/queue`, by the name of the
    /// program, below `$XDG_STATE_HOME`, or below `~/.local/state` where that is not set (XDG Base Directory Specification).
    public static var defaultDirectory: FilePath {
        let environment = ProcessInfo.processInfo.environment
        let name = FilePath(CommandLine.arguments.first ?? "").lastComponent?.string ?? "program"
        return defaultDirectory(of: name) { environment[$0] }
    }

    /// The directory of a program under an environment.
    static func defaultDirectory(of name: String, variable: (String) -> String?) -> FilePath {
        // One that is not absolute is to be taken for none.
        if let folder = variable("XDG_STATE_HOME"), folder.hasPrefix("/") {
            return FilePath(folder).appending(name).appending("queue")
        }
        var path = FilePath(variable("HOME").flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "/")
        for part in [".local", "state", name, "queue"] { path.append(part) }
        return path
    }
}
