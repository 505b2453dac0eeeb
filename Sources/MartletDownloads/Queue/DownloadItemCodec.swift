import FoundationEssentials
package import MartletCore
import MartletStreams

/// The file format of a download: a ``RecordEnvelope`` with the magic `MRTq` (formerly `MRTd`, like ``ResumeRecord``)
/// and the fields of its ``DownloadItem``, without user info and credentials. Version 1 has no ``PublicationRecord``.
package enum DownloadItemCodec {
    /// The maximum length of the file in bytes.
    package static let byteLimit = 4 << 20
    private static let envelope = RecordEnvelope(magic: "MRTq", former: "MRTd", version: 2, byteLimit: byteLimit)
    private static let textLimit = 1 << 20
    private static let messageLimit = 4096

    /// Encodes a download.
    /// - Throws: An ``HTTPError`` with the code `.invalidRequest` if the options cannot be encoded, or are too large.
    package static func encode(_ item: DownloadItem) throws(HTTPError) -> [UInt8] {
        var writer = envelope.makeWriter()
        try write(item, to: &writer)
        do throws(RecordEnvelope.FormatError) { return try envelope.sealed(writer) } catch {
            let count = writer.bytes.count
            throw HTTPError(
                .invalidRequest, phase: .preparing,
                message: "the download's URL, target and options take \(count) bytes, too many to be stored")
        }
    }

    package static func decode(_ bytes: [UInt8]) throws(RecordEnvelope.FormatError) -> DownloadItem {
        try envelope.decode(bytes) { reader, version throws(RecordReader.FieldError) in
            try item(&reader, version: version)
        }
    }

    // MARK: Writing

    private static func write(_ item: DownloadItem, to writer: inout RecordWriter) throws(HTTPError) {
        writer.write(item.id.number)
        writer.write(item.order)
        writer.write(UInt8(truncatingIfNeeded: item.priority.rawValue))
        write(item.url, to: &writer)
        writer.write(UInt8(truncatingIfNeeded: item.movedURLs.count))
        for url in item.movedURLs { write(url, to: &writer) }
        let (kind, target): (UInt8, FilePath) =
            switch item.target.kind {
            case .file(let path): (0, path)
            case .directory(let path): (1, path)
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

    private static func write(_ mark: FileIdentity, to writer: inout RecordWriter) {
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
        // Cut between characters, because only valid UTF-8 can be read.
        var message = error.message
        while message.utf8.count > messageLimit { message.removeLast(max(1, message.count / 8)) }
        writer.write(text: message)
        writer.write(error.wasSent)
        writer.write(optional: error.url?.absoluteString)
        writer.write(optional: error.resumableByteCount)
    }

    private static func bytes(of options: DownloadOptions) throws(HTTPError) -> [UInt8] {
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            return [UInt8](try encoder.encode(options))
        } catch {
            throw HTTPError(
                .invalidRequest, phase: .preparing,
                message: "the download's options cannot be stored: they contain a closure", underlying: error)
        }
    }

    // MARK: Reading

    private static func item(_ reader: inout RecordReader, version: UInt16) throws(RecordReader.FieldError)
        -> DownloadItem
    {
        let id = DownloadID(try reader.number("number"))
        let order: UInt64 = try reader.number("order")
        let level: UInt8 = try reader.number("priority")
        guard let priority = DownloadPriority(rawValue: Int(level)) else { throw reader.makeError("priority") }
        let url = try url(&reader, "URL")
        let movedURLs = try reader.list(of: UInt8.self, limit: DownloadItem.moveLimit, "moves") {
            reader throws(RecordReader.FieldError) in try Self.url(&reader, "moved URL")
        }
        let kind: UInt8 = try reader.number("target")
        let name = try path(&reader, "target")
        guard name.isAbsolute, kind < 2 else { throw reader.makeError("target") }
        var item = DownloadItem(id: id, order: order, url: url, target: kind == 0 ? .file(name) : .directory(name))
        item.priority = priority
        for url in movedURLs { item.move(to: url) }
        if try reader.flag("path") { item.path = try path(&reader, "path") }
        item.completedByteCount = try reader.number("completed")
        item.totalByteCount = try reader.optionalNumber("total")
        let options = try reader.counted(limit: byteLimit, "options")
        do { item.options = try JSONDecoder().decode(DownloadOptions.self, from: Data(options)) } catch {
            throw reader.makeError("options")
        }
        item.stage =
            switch try reader.number("state") as UInt8 {
            case 0: .waiting
            case 1: .paused
            case 2: .cancelled
            case 3: .finished(try result(&reader))
            case 4: .failed(try failure(&reader))
            default: throw reader.makeError("state")
            }
        if version > 1, try reader.flag("publication") {
            let result = try result(&reader)
            guard result.path.isAbsolute else { throw reader.makeError("file") }
            let part = try mark(&reader)
            item.publication = PublicationRecord(
                result: result, part: part, copy: try reader.flag("copy") ? try mark(&reader) : nil)
        }
        return item
    }

    private static func mark(_ reader: inout RecordReader) throws(RecordReader.FieldError) -> FileIdentity {
        FileIdentity(
            number: try reader.number("mark"), device: try reader.number("mark"),
            modificationTime: try reader.number("mark"))
    }

    private static func result(_ reader: inout RecordReader) throws(RecordReader.FieldError) -> DownloadResult {
        let path = try path(&reader, "file")
        let byteCount: UInt64 = try reader.number("length")
        let resumed: UInt64 = try reader.number("resumed")
        let received: UInt64 = try reader.number("received")
        let url = try url(&reader, "origin")
        return DownloadResult(
            path: path, byteCount: byteCount, resumedByteCount: resumed, receivedByteCount: received,
            verified: try reader.checksums(), url: url)
    }

    private static func failure(_ reader: inout RecordReader) throws(RecordReader.FieldError) -> HTTPError {
        // A code that this version does not know is preserved.
        let code = HTTPError.Code(rawValue: try reader.text(limit: textLimit, "code"))
        let phase = HTTPError.Phase(rawValue: try reader.text(limit: textLimit, "phase")) ?? .processingResponse
        var error = HTTPError(code, phase: phase, message: try reader.text(limit: textLimit, "message"))
        error.wasSent = try reader.flag("sent")
        if let url = try reader.optionalText(limit: textLimit, "URL") {
            error = error.about(.get, try? HTTPURL(url, pathAsIs: true))
        }
        error.resumableByteCount = try reader.optionalNumber("kept")
        return error
    }

    private static func url(_ reader: inout RecordReader, _ field: String) throws(RecordReader.FieldError) -> HTTPURL {
        let text = try reader.text(limit: textLimit, field)
        guard let url = try? HTTPURL(text, pathAsIs: true) else { throw reader.makeError(field) }
        return url
    }

    private static func path(_ reader: inout RecordReader, _ field: String) throws(RecordReader.FieldError) -> FilePath
    {
        let path = FilePath(try reader.text(limit: textLimit, field))
        guard !path.isEmpty else { throw reader.makeError(field) }
        return path
    }
}

extension DownloadItem: QueueItem {
    package static let words = (file: "item", owner: "download manager", contents: "downloads")
    package static let byteLimit = DownloadItemCodec.byteLimit
    package var number: UInt64 { id.number }

    package init(record: [UInt8]) throws(RecordEnvelope.FormatError) { self = try DownloadItemCodec.decode(record) }
    package func record() throws(HTTPError) -> [UInt8] { try DownloadItemCodec.encode(self) }
}
