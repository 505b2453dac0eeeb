import MartletNetwork
import MartletURL
import FoundationEssentials
import MartletCaching
package import MartletCore
import MartletHosts
import MartletStreams
package import MartletStorage
import SystemPackage

/// The form of a download's file: a ``RecordEnvelope`` named `MRTd`, and what is known of the download.
///
/// Version 2; 1 where nothing can be noted of a file that is about to get its name. User info of URLs and fields that hold
/// credentials are not written.
package enum DownloadItemCodec {
    /// The longest file.
    package static let byteLimit = 4 << 20
    private static let envelope = RecordEnvelope(magic: "MRTd", version: 2, byteLimit: byteLimit)

    /// The bytes of a download's file.
    /// - Throws: An ``HTTPError`` with the code `.invalidRequest` where the options cannot be written, or are too large.
    package static func encode(_ item: DownloadItem) throws(HTTPError) -> [UInt8] {
        var writer = envelope.begun()
        try write(item, to: &writer)
        do throws(RecordEnvelope.Fault) {
            return try envelope.sealed(writer)
        } catch {
            throw HTTPError(
                .invalidRequest, phase: .preparing,
                message:
                    "the download's URL, target and options take \(writer.bytes.count) bytes, too many to be kept"
            )
        }
    }

    /// The download in a file's bytes.
    package static func decode(_ bytes: [UInt8]) throws(RecordEnvelope.Fault) -> DownloadItem {
        try envelope.decode(bytes) { reader, version throws(RecordReader.Fault) in
            try item(&reader, version: version)
        }
    }
}

// What is known of a download, field by field.
extension DownloadItemCodec {
    private static var textLimit: Int { 1 << 20 }
    private static var messageLimit: Int { 4096 }

    // MARK: Writing

    static func write(_ item: DownloadItem, to writer: inout RecordWriter) throws(HTTPError) {
        writer.write(item.id.number)
        writer.write(item.order)
        writer.write(UInt8(truncatingIfNeeded: item.priority.rawValue))
        write(item.url, to: &writer)
        writer.write(UInt8(truncatingIfNeeded: item.movedURLs.count))
        for url in item.movedURLs { write(url, to: &writer) }
        let (kind, target): (UInt8, FilePath) =
            switch item.target {
            case .file(let path): (0, path)
            case .folder(let path): (1, path)
            }
        writer.write(kind)
        writer.write(text: target.string)
        writer.write(optional: item.path?.string)
        writer.write(item.completedByteCount)
        writer.write(optional: item.totalByteCount)
        writer.write(counted: try bytes(of: item.options))
        switch item.stage {
        case .waiting: writer.write(UInt8(0))
        case .paused: writer.write(UInt8(1))
        case .cancelled: writer.write(UInt8(2))
        case .finished(let result):
            writer.write(UInt8(3))
            write(result, to: &writer)
        case .failed(let error):
            writer.write(UInt8(4))
            write(error, to: &writer)
        }
        writer.write(optional: item.publication) { publication, writer in
            write(publication.result, to: &writer)
            write(publication.part, to: &writer)
            writer.write(optional: publication.copy) { write($0, to: &$1) }
        }
    }

    private static func write(_ mark: FileMark, to writer: inout RecordWriter) {
        writer.write(mark.number)
        writer.write(mark.device)
        writer.write(mark.modificationTime)
    }

    private static func write(_ url: HTTPURL, to writer: inout RecordWriter) {
        writer.write(text: url.withoutUserInfo.absoluteString)
    }

    private static func write(_ result: DownloadResult, to writer: inout RecordWriter) {
        writer.write(text: result.path.string)
        writer.write(result.byteCount)
        writer.write(result.resumedByteCount)
        writer.write(result.receivedByteCount)
        write(result.url, to: &writer)
        writer.write(result.verified)
    }

    private static func write(_ error: HTTPError, to writer: inout RecordWriter) {
        writer.write(text: error.code.rawValue)
        writer.write(text: error.phase.rawValue)
        // Cut between characters: what is read must be UTF-8.
        var message = error.message
        while message.utf8.count > messageLimit { message.removeLast(max(1, message.count / 8)) }
        writer.write(text: message)
        writer.write(error.wasSent)
        writer.write(optional: error.origin)
        writer.write(optional: error.keptByteCount)
    }

    private static func bytes(of options: DownloadOptions) throws(HTTPError) -> [UInt8] {
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            return [UInt8](try encoder.encode(options))
        } catch {
            throw HTTPError(
                .invalidRequest, phase: .preparing,
                message: "the download's options cannot be kept: a closure in them cannot be written",
                underlying: error)
        }
    }

    // MARK: Reading

    static func item(_ reader: inout RecordReader, version: UInt16) throws(RecordReader.Fault) -> DownloadItem
    {
        let id = DownloadID(try reader.number("number"))
        let order: UInt64 = try reader.number("order")
        let level: UInt8 = try reader.number("priority")
        guard let priority = DownloadPriority(rawValue: Int(level)) else { throw reader.fault("priority") }
        let url = try url(&reader, "URL")
        let moveCount: UInt8 = try reader.number("moves")
        guard moveCount <= DownloadItem.moveLimit else { throw reader.fault("moves") }
        var movedURLs: [HTTPURL] = []
        for _ in 0..<moveCount { movedURLs.append(try Self.url(&reader, "moved URL")) }
        let kind: UInt8 = try reader.number("target")
        let name = try path(&reader, "target")
        guard name.isAbsolute else { throw reader.fault("target") }
        let target: DownloadTarget
        switch kind {
        case 0: target = .file(name)
        case 1: target = .folder(name)
        default: throw reader.fault("target")
        }
        var item = DownloadItem(id: id, order: order, url: url, target: target)
        item.priority = priority
        for url in movedURLs { item.move(to: url) }
        item.path = try reader.optional("path") { reader throws(RecordReader.Fault) in
            try path(&reader, "path")
        }
        item.completedByteCount = try reader.number("completed")
        item.totalByteCount = try reader.optionalNumber("total")
        let options = try reader.counted(limit: byteLimit, "options")
        do {
            item.options = try JSONDecoder().decode(DownloadOptions.self, from: Data(options))
        } catch {
            throw reader.fault("options")
        }
        item.stage = try stage(&reader)
        if version > 1, try reader.flag("publication") { item.publication = try publication(&reader) }
        return item
    }

    private static func publication(
        _ reader: inout RecordReader
    ) throws(RecordReader.Fault) -> DownloadPublication {
        let result = try result(&reader)
        guard result.path.isAbsolute else { throw reader.fault("file") }
        let part = try mark(&reader)
        return DownloadPublication(
            result: result, part: part, copy: try reader.flag("copy") ? try mark(&reader) : nil)
    }

    private static func mark(_ reader: inout RecordReader) throws(RecordReader.Fault) -> FileMark {
        FileMark(
            number: try reader.number("mark"), device: try reader.number("mark"),
            modificationTime: try reader.number("mark"))
    }

    private static func stage(_ reader: inout RecordReader) throws(RecordReader.Fault) -> DownloadItem.Stage {
        let stage: UInt8 = try reader.number("state")
        switch stage {
        case 0: return .waiting
        case 1: return .paused
        case 2: return .cancelled
        case 3: return .finished(try result(&reader))
        case 4: return .failed(try failure(&reader))
        default: throw reader.fault("state")
        }
    }

    private static func result(_ reader: inout RecordReader) throws(RecordReader.Fault) -> DownloadResult {
        let path = try path(&reader, "file")
        let byteCount: UInt64 = try reader.number("length")
        let resumed: UInt64 = try reader.number("resumed")
        let received: UInt64 = try reader.number("received")
        let url = try url(&reader, "origin")
        return DownloadResult(
            path: path, byteCount: byteCount, resumedByteCount: resumed, receivedByteCount: received,
            verified: try reader.checksums(), url: url)
    }

    private static func failure(_ reader: inout RecordReader) throws(RecordReader.Fault) -> HTTPError {
        // A code that this version does not know is kept.
        let code = HTTPError.Code(rawValue: try reader.text(limit: textLimit, "code"))
        let phase = HTTPError.Phase(rawValue: try reader.text(limit: textLimit, "phase")) ?? .evaluating
        var error = HTTPError(code, phase: phase, message: try reader.text(limit: textLimit, "message"))
        error.wasSent = try reader.flag("sent")
        error.origin = try reader.optionalText(limit: textLimit, "origin")
        error.keptByteCount = try reader.optionalNumber("kept")
        return error
    }

    private static func url(
        _ reader: inout RecordReader, _ field: String
    ) throws(RecordReader.Fault) -> HTTPURL {
        let text = try reader.text(limit: textLimit, field)
        do throws(HTTPURL.ParseError) {
            return try HTTPURL(text, pathAsIs: true)
        } catch {
            throw reader.fault(field)
        }
    }

    private static func path(
        _ reader: inout RecordReader, _ field: String
    ) throws(RecordReader.Fault) -> FilePath {
        let path = FilePath(try reader.text(limit: textLimit, field))
        guard !path.isEmpty else { throw reader.fault(field) }
        return path
    }
}
