import MartletCore
import MartletDownloads
import MartletTransport

/// The file format of an upload: a `RecordEnvelope` with the magic `MRTu`, without secrets other than the upload URL.
/// Version 2 lacks the device of the file, which a reboot may change.
enum UploadItemCodec {
    /// The maximum length of the file in bytes.
    static let byteLimit = 2 << 20
    private static let textLimit = 1 << 18
    private static let fieldLimit: UInt16 = 10_000
    /// The maximum size of a stored response body.
    static let bodyLimit = 1 << 16
    private static let envelope = RecordEnvelope(magic: "MRTu", version: 2, byteLimit: byteLimit)

    static func encode(_ item: UploadItem) throws(HTTPError) -> [UInt8] {
        do throws(RecordEnvelope.FormatError) { return try envelope.encode { write(item, to: &$0) } } catch {
            throw HTTPError(
                .invalidRequest, phase: .preparing, message: "the upload's URL, path and header fields are too large")
        }
    }

    static func decode(_ bytes: [UInt8]) throws(RecordEnvelope.FormatError) -> UploadItem {
        try envelope.decode(bytes) { reader, version throws(RecordReader.FieldError) in try item(&reader, version) }
    }

    // MARK: Writing

    private static func write(_ item: UploadItem, to writer: inout RecordWriter) {
        writer.write(item.id.number)
        writer.write(item.order)
        writer.write(text: item.url.withoutUserInfo.absoluteString)
        writer.write(text: item.path)
        writer.write(item.file.byteCount)
        writer.write(item.file.modificationTime)
        writer.write(item.file.number)
        write(item.options, to: &writer)
        writer.write(item.checkpoint.protocol.rawValue)
        writer.write(optional: item.checkpoint.url?.absoluteString)
        writer.write(item.checkpoint.offset)
        writer.write(item.checkpoint.mayBeComplete)
        switch item.stage {
        case .waiting: writer.write(UInt8(0))
        case .paused: writer.write(UInt8(1))
        case .cancelled: writer.write(UInt8(2))
        case .finished(let result):
            writer.write(UInt8(3))
            writer.write(UInt16(truncatingIfNeeded: result.statusCode))
            var fields = result.headers
            for name in UploadItem.secretNames(item.options) { fields[name] = nil }
            writer.write(fields)
            writer.write(counted: result.body.prefix(bodyLimit))
            writer.write(result.isResponseLost)
        case .failed(let error):
            writer.write(UInt8(4))
            writer.write(text: error.code.rawValue)
            writer.write(text: error.phase.rawValue)
            writer.write(text: String(decoding: error.message.utf8.prefix(4096), as: UTF8.self))
            writer.write(error.wasSent)
            writer.write(UInt16(truncatingIfNeeded: error.status ?? 0))
        }
    }

    private static func write(_ options: UploadOptions, to writer: inout RecordWriter) {
        var fields = options.headers.fields
        for name in UploadItem.secretNames(options) { fields[name] = nil }
        writer.write(text: options.method.rawValue)
        writer.write(fields)
        writer.write(options.protocol.rawValue)
        writer.write(optional: options.chunkSize?.bytes)
        writer.write(options.priority.rawValue)
        writer.write(options.allowsRepetition)
        writer.write(optional: options.bandwidth?.bytesPerSecond)
        writer.write(UInt16(truncatingIfNeeded: options.secretFields.count))
        for name in options.secretFields { writer.write(text: name.rawName) }
        writer.write(options.retry.maximumRetries)
        for delay in [options.retry.initialDelay, options.retry.maximumDelay, options.retry.maximumRetryAfter] {
            writer.write(delay.wholeNanoseconds)
        }
    }

    // MARK: Reading

    private static func item(_ reader: inout RecordReader, _ version: UInt16) throws(RecordReader.FieldError)
        -> UploadItem
    {
        let id = UploadID(try reader.number("number"))
        let order: UInt64 = try reader.number("order")
        let url = try url(&reader, "URL")
        let path = try reader.text(limit: textLimit, "path")
        guard path.hasPrefix("/"), !path.utf8.contains(0) else { throw reader.makeError("path") }
        let file = UploadFileIdentity(
            byteCount: try reader.number("length"), modificationTime: try reader.number("time"),
            number: try reader.number("inode"))
        if version < 2 { _ = try reader.number("device") as UInt64 }
        var item = UploadItem(url: url, path: path, file: file, options: try options(&reader))
        (item.id, item.order) = (id, order)
        item.checkpoint.protocol = try value(&reader, "protocol", UploadProtocol.init(rawValue:))
        if try reader.flag("upload URL") { item.checkpoint.url = try Self.url(&reader, "upload URL") }
        item.checkpoint.offset = try reader.number("offset")
        guard item.checkpoint.offset <= file.byteCount else { throw reader.makeError("offset") }
        item.checkpoint.mayBeComplete = try reader.flag("completeness")
        switch try reader.number("state") as UInt8 {
        case 0: item.stage = .waiting
        case 1: item.stage = .paused
        case 2: item.stage = .cancelled
        case 3:
            let status: UInt16 = try reader.number("status")
            let fields = try reader.fields(limit: textLimit)
            let body = Array(try reader.counted(limit: bodyLimit, "body"))
            item.stage = .finished(
                UploadResult(
                    statusCode: Int(status), headers: fields, body: body, byteCount: file.byteCount,
                    uploadURL: item.checkpoint.url, isResponseLost: try reader.flag("response")))
        case 4:
            let code = HTTPError.Code(rawValue: try reader.text(limit: textLimit, "code"))
            let phase = HTTPError.Phase(rawValue: try reader.text(limit: textLimit, "phase")) ?? .processingResponse
            let message = try reader.text(limit: textLimit, "message")
            let wasSent = try reader.flag("sent")
            let status: UInt16 = try reader.number("status")
            item.stage = .failed(
                HTTPError(
                    code, phase: phase, message: message, wasSent: wasSent, method: item.options.method, url: url,
                    status: status == 0 ? nil : Int(status)))
        default: throw reader.makeError("state")
        }
        return item
    }

    private static func options(_ reader: inout RecordReader) throws(RecordReader.FieldError) -> UploadOptions {
        guard let method = HTTPRequest.Method(rawValue: try reader.text(limit: textLimit, "method")) else {
            throw reader.makeError("method")
        }
        var options = UploadOptions(method: method, headers: HTTPHeaders(try reader.fields(limit: textLimit)))
        options.protocol = try value(&reader, "protocol", UploadProtocol.init(rawValue:))
        options.chunkSize = try reader.optionalNumber("chunk size").map { ByteCount($0) }
        options.priority = try value(&reader, "priority", UploadPriority.init(rawValue:))
        options.allowsRepetition = try reader.flag("repetition")
        options.bandwidth = try reader.optionalNumber("bandwidth").map { BandwidthRate(bytesPerSecond: $0) }
        options.secretFields = Set(
            try reader.list(of: UInt16.self, limit: fieldLimit, "secret fields") {
                reader throws(RecordReader.FieldError) in try reader.fieldName(limit: textLimit, "secret field")
            })
        options.retry.maximumRetries = try reader.number("retries")
        options.retry.initialDelay = try duration(&reader)
        options.retry.maximumDelay = try duration(&reader)
        options.retry.maximumRetryAfter = try duration(&reader)
        return options
    }

    private static func value<Value>(_ reader: inout RecordReader, _ field: String, _ make: (UInt8) -> Value?)
        throws(RecordReader.FieldError) -> Value
    {
        guard let value = make(try reader.number(field)) else { throw reader.makeError(field) }
        return value
    }

    private static func duration(_ reader: inout RecordReader) throws(RecordReader.FieldError) -> Duration {
        .nanoseconds(try reader.number("delay") as Int64)
    }

    private static func url(_ reader: inout RecordReader, _ field: String) throws(RecordReader.FieldError) -> HTTPURL {
        let text = try reader.text(limit: textLimit, field)
        guard let url = try? HTTPURL(text, pathAsIs: true) else { throw reader.makeError(field) }
        return url
    }
}

extension UploadItem: QueueItem {
    static let words = (file: "upload", owner: "upload manager", contents: "uploads")
    static let byteLimit = UploadItemCodec.byteLimit
    var number: UInt64 { id.number }

    init(record: [UInt8]) throws(RecordEnvelope.FormatError) { self = try UploadItemCodec.decode(record) }
    func record() throws(HTTPError) -> [UInt8] { try UploadItemCodec.encode(self) }
}
