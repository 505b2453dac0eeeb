import Foundation

/// Files that another process writes.
enum OutputFile {
    /// The text of the file now; empty if there is no such file.
    static func contents(of path: String) -> String {
        String(decoding: bytes(of: path), as: UTF8.self)
    }

    /// The bytes of the file now; empty if there is no such file.
    ///
    /// They are read through a file handle: `FileManager` of Swift 6.3 leaks a page for each empty file that it reads,
    /// which the address sanitizer reports.
    static func bytes(of path: String) -> [UInt8] {
        guard let handle = FileHandle(forReadingAtPath: path) else { return [] }
        defer { try? handle.close() }
        return [UInt8]((try? handle.readToEnd()) ?? Data())
    }
}
