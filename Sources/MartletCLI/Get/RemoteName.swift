import Martlet

/// The name of a file that `-O` writes: the last part of the URL's path, as it stands there.
enum RemoteName {
    /// What stands for a name that is not known before the response.
    static let placeholder = "download"

    /// The name; never a folder, and never a way out of one.
    static func name(for url: HTTPURL) throws(UsageError) -> String {
        let last = url.path.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        guard !last.isEmpty, last != ".", last != "..", !last.utf8.contains(0) else {
            throw UsageError("option -O: the URL's path names no file", status: .writeFailed)
        }
        return String(last)
    }
}
