/// Exchanges as a HAR 1.2 log, which the developer tools of browsers open.
///
/// It can be had whole, or written as it grows: each ``Piece`` says at which offset of the file its bytes belong, and after
/// each of them the file is a complete log.
public struct HARLog: Sendable {
    /// Bytes for a file.
    public struct Piece: Hashable, Sendable {
        /// Where in the file they begin; what is behind them, if anything, is theirs to overwrite.
        public let offset: UInt64
        /// The bytes.
        public let bytes: [UInt8]
    }

    private static let closing = Array("\n]}}\n".utf8)
    private var entryCount = 0
    /// Where the closing brackets begin in what was handed out.
    private var end: UInt64 = 0
    private let creator: String
    private let version: String

    /// A log without entries.
    /// - Parameters:
    ///   - creator: The program that makes it.
    ///   - version: The program's version.
    public init(creator: String = "Martlet", version: String = martletVersion) {
        self.creator = creator
        self.version = version
    }

    /// What the file of a log without entries is, to be written before the first entry.
    public mutating func begin() -> Piece {
        var bytes = Array("{\"log\":".utf8)
        HARValue.members([
            ("version", .text("1.2")),
            ("creator", .members([("name", .text(creator)), ("version", .text(version))])),
            ("pages", .list([])),
        ])
        .write(to: &bytes)
        bytes.removeLast()
        bytes += ",\"entries\":[".utf8
        entryCount = 0
        end = UInt64(bytes.count)
        return Piece(offset: 0, bytes: bytes + HARLog.closing)
    }

    /// What an entry adds to the file.
    public mutating func append(_ entry: HAREntry) -> Piece {
        let offset = end
        let bytes = (entryCount == 0 ? [0x0A] : [UInt8(ascii: ","), 0x0A]) + entry.json
        entryCount += 1
        end += UInt64(bytes.count)
        return Piece(offset: offset, bytes: bytes + HARLog.closing)
    }

    /// A whole log of some entries.
    public static func bytes(
        _ entries: [HAREntry], creator: String = "Martlet", version: String = martletVersion
    )
        -> [UInt8]
    {
        var log = HARLog(creator: creator, version: version)
        var bytes = log.begin().bytes
        for entry in entries {
            bytes.removeLast(closing.count)
            bytes += log.append(entry).bytes
        }
        return bytes
    }
}
