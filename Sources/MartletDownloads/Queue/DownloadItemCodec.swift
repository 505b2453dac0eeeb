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
    private static var checksumLimit: Int { 64 }

    // MARK: Writing

    static func write(_ item: DownloadItem, to writer: inout RecordWriter) throws(HTTPError) {
        writer.write(item.id.number)
        writer.write(item.order)
        writer.write(UInt8(truncatingIfNeeded: item.priority.rawValue))
        write(item.url, to: &writer)
        writer.write(UInt8(truncatingIfNeeded: item.movedURLs.count))
        for url in item.movedURLs { write(url, to: &writer) }
        switch item.target {
        case .file(let path):
            writer.write(UInt8(0))
            writer.write(counted: path.string.utf8)
        case .folder(let path):
            writer.write(UInt8(1))
            writer.write(counted: path.string.utf8)
        }
        write(item.path?.string, to: &writer)
        writer.write(item.completedByteCount)
        writer.write(item.totalByteCount != nil)
        if let count = item.totalByteCount { writer.write(count) }
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
        writer.write(item.publication != nil)
        if let publication = item.publication {
            write(publication.result, to: &writer)
            write(publication.part, to: &writer)
            writer.write(publication.copy != nil)
            if let copy = publication.copy { write(copy, to: &writer) }
        }
    }

    private static func write(_ mark: FileMark, to writer: inout RecordWriter) {
        writer.write(mark.number)
        writer.write(mark.device)
        writer.write(UInt64(bitPattern: mark.modificationTime))
    }

    private static func write(_ url: HTTPURL, to writer: inout RecordWriter) {
        writer.write(counted: url.withoutUserInfo.absoluteString.utf8)
    }

    private static func write(_ text: String?, to writer: inout RecordWriter) {
        writer.write(text != nil)
        if let text { writer.write(counted: text.utf8) }
    }

    private static func write(_ result: DownloadResult, to writer: inout RecordWriter) {
        writer.write(counted: result.path.string.utf8)
        writer.write(result.byteCount)
        writer.write(result.resumedByteCount)
        writer.write(result.receivedByteCount)
        write(result.url, to: &writer)
        let verified = result.verified.prefix(checksumLimit)
        writer.write(UInt8(truncatingIfNeeded: verified.count))
        for checksum in verified {
            writer.write(counted: checksum.algorithm.rawValue.utf8)
            writer.write(counted: checksum.bytes)
        }
    }

    private static func write(_ error: HTTPError, to writer: inout RecordWriter) {
        writer.write(counted: error.code.rawValue.utf8)
        writer.write(counted: error.phase.rawValue.utf8)
        // Cut between characters: what is read must be UTF-8.
        var message = error.message
        while message.utf8.count > messageLimit { message.removeLast(max(1, message.count / 8)) }
        writer.write(counted: message.utf8)
        writer.write(error.wasSent)
        write(error.origin, to: &writer)
        writer.write(error.keptByteCount != nil)
        if let count = error.keptByteCount { writer.write(count) }
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

    static func item(
        _ reader: inout RecordReader, version: UInt16
    ) throws(RecordReader.Fault) -> DownloadItem {
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
        item.path = try reader.flag("path") ? try path(&reader, "path") : nil
        item.completedByteCount = try reader.number("completed")
        item.totalByteCount = try reader.flag("total") ? try reader.number("total") : nil
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
            modificationTime: Int64(bitPattern: try reader.number("mark")))
    }

    private static func stage(
        _ reader: inout RecordReader
    ) throws(RecordReader.Fault) -> DownloadItem.Stage {
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
        let count: UInt8 = try reader.number("checksums")
        guard count <= checksumLimit else { throw reader.fault("checksums") }
        var verified: [Checksum] = []
        for _ in 0..<count {
            let name = try reader.text(limit: textLimit, "hash function")
            let bytes = Array(try reader.counted(limit: textLimit, "hash"))
            guard let algorithm = DigestSink.Algorithm(rawValue: name),
                let checksum = Checksum(algorithm, bytes)
            else { throw reader.fault("hash") }
            verified.append(checksum)
        }
        return DownloadResult(
            path: path, byteCount: byteCount, resumedByteCount: resumed, receivedByteCount: received,
            verified: verified, url: url)
    }

    private static func failure(_ reader: inout RecordReader) throws(RecordReader.Fault) -> HTTPError {
        // A code that this version does not know is kept.
        let code = HTTPError.Code(rawValue: try reader.text(limit: textLimit, "code"))
        let phase = HTTPError.Phase(rawValue: try reader.text(limit: textLimit, "phase")) ?? .evaluating
        var error = HTTPError(code, phase: phase, message: try reader.text(limit: textLimit, "message"))
        error.wasSent = try reader.flag("sent")
        error.origin = try reader.flag("origin") ? try reader.text(limit: textLimit, "origin") : nil
        error.keptByteCount = try reader.flag("kept") ? try reader.number("kept") : nil
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
