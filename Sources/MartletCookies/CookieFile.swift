import MartletCore
import MartletStorage
import MartletWire

/// The file of a ``CookieJar``: a line that says what it is, and a line for each cookie. Its calls block.
package struct CookieFile: Sendable {
    /// Where it is.
    let path: String

    /// The most bytes of it that are read: 64 MiB, above what a full jar can have. It stops a mistaken path.
    static let byteLimit: UInt64 = 64 << 20
    private static let title = Array("# Martlet cookies: secrets, for the eyes of their owner\n".utf8)

    /// What was found in a file.
    package struct Content: Sendable {
        /// The cookies of the lines that are whole, in order.
        package var cookies: [Cookie] = []
        /// The other lines, counted from 1; the first thousand of them.
        package var malformedLines: [Int] = []
    }

    /// Reads the file; one that does not exist is empty.
    func read() throws(StorageError) -> Content {
        let bytes: [UInt8]
        do throws(StorageError) {
            bytes = try FileReader(path: path).contents(limit: CookieFile.byteLimit)
        } catch {
            guard error.isMissingFile else { throw error }
            return Content()
        }
        return CookieFile.content(bytes)
    }

    /// Reads text as that of a file.
    package static func content(_ bytes: [UInt8]) -> Content {
        var content = Content()
        let lines = bytes.split(separator: ByteClass.lineFeed, omittingEmptySubsequences: false)
        for (index, line) in lines.enumerated() where !line.isEmpty && line.first != UInt8(ascii: "#") {
            if let cookie = CookieRecord.cookie(line) {
                content.cookies.append(cookie)
            } else if content.malformedLines.count < CookieImportReport.malformedLimit {
                content.malformedLines.append(index + 1)
            }
        }
        return content
    }

    /// The text of a file of cookies.
    package static func text(of cookies: [Cookie]) -> [UInt8] {
        cookies.reduce(into: title) { text, cookie in
            text += CookieRecord.line(cookie)
            text.append(ByteClass.lineFeed)
        }
    }

    /// Puts a text in the place of the file, wholly or not at all, readable by its owner alone.
    static func replace(_ path: String, with text: [UInt8]) throws(StorageError) {
        let file = try FilePublisher(path: path, collision: .replace, mode: 0o600)
        try file.write(text)
        try file.publish(collision: .replace)
    }
}

/// What came of reading cookies from a file.
public struct CookieImportReport: Sendable, Hashable {
    /// How many cookies were stored.
    public var stored: Int
    /// How many were not, though their lines are whole: they have expired, or are more than the jar keeps.
    public var dropped: Int
    /// The lines that are damaged or no cookie, counted from 1; the first thousand of them.
    public var malformedLines: [Int]

    /// How many malformed lines are remembered.
    static let malformedLimit = 1000

    /// A report of nothing.
    init(malformedLines: [Int] = []) {
        stored = 0
        dropped = 0
        self.malformedLines = malformedLines
    }
}
