import Foundation

/// Files that another process writes.
enum OutputFile {
    /// What is in the file now; nothing when there is no such file.
    static func contents(of path: String) -> String {
        String(decoding: bytes(of: path), as: UTF8.self)
    }

    /// What is in the file now; nothing when there is no such file.
    ///
    /// Through a file handle: `FileManager` of Swift 6.3 leaks a page for each empty file that it reads, and the
    /// address sanitizer says so.
    static func bytes(of path: String) -> [UInt8] {
        guard let handle = FileHandle(forReadingAtPath: path) else { return [] }
        defer { try? handle.close() }
        return [UInt8]((try? handle.readToEnd()) ?? Data())
    }
}
