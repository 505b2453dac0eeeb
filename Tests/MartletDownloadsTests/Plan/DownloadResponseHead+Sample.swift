import MartletCaching
import MartletCore
import MartletDownloads
import MartletWire

extension DownloadResponseHead {
    /// The URL of the files of these tests.
    static func place(_ text: String = "http://files.example/a.bin") throws -> HTTPURL { try HTTPURL(text) }

    /// Makes a response head.
    static func sample(
        _ status: Int, _ fields: [(String, String)] = [], byteCount: UInt64? = nil,
        from url: String = "http://files.example/a.bin", now: Int64 = 1_700_000_000
    ) throws -> DownloadResponseHead {
        DownloadResponseHead(
            ResponseHead(status: status, fields: FieldBlock(fields)), byteCount: byteCount,
            url: try place(url), now: now)
    }
}

extension Representation {
    /// The representation that these fields describe.
    static func sample(_ fields: (String, String)...) -> Representation { Representation(FieldBlock(fields)) }
}
