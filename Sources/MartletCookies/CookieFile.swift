import MartletStorage
import MartletWire

/// The file of a ``CookieJar``: a line that identifies the format, and a line for each cookie. Its functions block.
package struct CookieFile: Sendable {
    /// The path of the file.
    let path: String
    /// The maximum number of bytes that are read, so that a wrong path cannot fill the memory: 64 MiB.
    static let byteLimit: UInt64 = 64 << 20
    private static let title = Array("# Martlet cookies: secrets, for the eyes of their owner\n".utf8)

    /// The content of a file.
    package struct Content: Sendable {
        /// The cookies of the valid lines, in order.
        package var cookies: [Cookie] = []
        /// The numbers of the other lines, starting at 1; the first thousand of them.
        package var malformedLines: [Int] = []

        /// Parses the lines of a text, except comments.
        init(_ text: [UInt8], isComment: (ArraySlice<UInt8>) -> Bool, parse: (ArraySlice<UInt8>) -> Cookie?) {
            let lines = text.split(separator: ByteClass.lineFeed, omittingEmptySubsequences: false)
            for (index, line) in lines.enumerated() where !isComment(line) {
                if let cookie = parse(line) {
                    cookies.append(cookie)
                } else if malformedLines.count < CookieImportReport.malformedLimit {
                    malformedLines.append(index + 1)
                }
            }
        }
    }

    /// Reads the file. A file that does not exist counts as empty.
    func read() throws(StorageError) -> Content {
        do throws(StorageError) {
            return CookieFile.content(try FileReader(path: path).contents(limit: CookieFile.byteLimit))
        } catch  where error.isMissingFile { return CookieFile.content([]) }
    }

    /// Parses the text of a file.
    package static func content(_ bytes: [UInt8]) -> Content {
        Content(bytes, isComment: { $0.isEmpty || $0.first == UInt8(ascii: "#") }, parse: CookieRecord.cookie)
    }

    /// Returns the text of a file with cookies.
    package static func text(of cookies: [Cookie]) -> [UInt8] {
        cookies.reduce(into: title) { text, cookie in
            text += CookieRecord.line(cookie)
            text.append(ByteClass.lineFeed)
        }
    }

    /// Replaces a file completely or not at all. The new file is readable only by its owner.
    static func replace(_ path: String, with text: [UInt8]) throws(StorageError) {
        let file = try AtomicFileWriter(path: path, collision: .replace, mode: 0o600)
        try file.write(text)
        try file.publish(collision: .replace)
    }
}

/// The result of reading cookies from a file.
public struct CookieImportReport: Sendable, Hashable {
    /// The number of cookies that were stored.
    public var stored = 0
    /// The number of valid cookies that were not stored: they have expired, or exceed the limits of the jar.
    public var dropped = 0
    /// The numbers of the malformed lines, starting at 1; the first thousand of them.
    public var malformedLines: [Int] = []
    /// The maximum number of malformed lines that are listed.
    static let malformedLimit = 1000
}
