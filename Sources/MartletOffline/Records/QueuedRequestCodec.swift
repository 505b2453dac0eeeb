package import MartletCore

/// The file format of a stored request: a ``RecordEnvelope`` with the magic `MRTo` and the fields of its
/// ``QueuedRequest``, which has no secret ones. Version 2 adds the deadline on the clock that counts from the boot,
/// version 3 the time of the last retry after the expiry, version 4 the compression of the body.
package enum QueuedRequestCodec {
    /// The maximum length of the file in bytes.
    package static let byteLimit = 24 << 20
    private static let textLimit = 1 << 20
    private static let envelope = RecordEnvelope(magic: "MRTo", version: 4, byteLimit: byteLimit)

    package static func encode(_ request: QueuedRequest) throws(RecordEnvelope.FormatError) -> [UInt8] {
        try envelope.encode { write(request, to: &$0) }
    }

    package static func decode(_ bytes: [UInt8]) throws(RecordEnvelope.FormatError) -> QueuedRequest {
        try envelope.decode(bytes) { reader, version throws(RecordReader.FieldError) in try request(&reader, version) }
    }

    // MARK: Writing

    static func write(_ request: QueuedRequest, to writer: inout RecordWriter, version: UInt16 = 4) {
        writer.write(request.id.number)
        writer.write(text: request.lane)
        writer.write(optional: request.tag)
        writer.write(text: request.method)
        writer.write(text: request.url.absoluteForm)
        writer.write(request.fields)
        writer.write(UInt16(truncatingIfNeeded: request.secretFields.count))
        for name in request.secretFields { writer.write(text: name) }
        writer.write(optional: request.idempotencyKey)
        writer.write(optional: request.contentType)
        switch request.body {
        case .none: writer.write(UInt8(0))
        case .inline(let bytes):
            writer.write(UInt8(1))
            writer.write(counted: bytes)
        case .own(let mark):
            writer.write(UInt8(2))
            write(mark, to: &writer)
        case .file(let path, let mark):
            writer.write(UInt8(3))
            writer.write(text: path)
            write(mark, to: &writer)
        }
        writer.write(request.submitted)
        writer.write(request.expires)
        writer.write(request.attempts)
        let (stage, letter): (UInt8, OfflineDeadLetter?) =
            switch request.stage {
            case .waiting: (0, nil)
            case .sending: (1, nil)
            case .dead(let reason): (2, reason)
            case .uncertain(let reason): (3, reason)
            }
        writer.write(stage)
        if let letter { write(letter, to: &writer) }
        guard version >= 2 else { return }
        writer.write(optional: request.bootDeadline) { deadline, writer in
            writer.write(text: deadline.boot)
            writer.write(deadline.milliseconds)
        }
        if version >= 3 { writer.write(optional: request.renewed) }
        guard version >= 4 else { return }
        writer.write(optional: request.compression?.coding.rawValue)
        writer.write(optional: request.compression?.level.map { Int64($0) })
    }

    private static func write(_ mark: QueuedBody.FileIdentity, to writer: inout RecordWriter) {
        writer.write(mark.byteCount)
        writer.write(counted: mark.digest)
    }

    private static func write(_ letter: OfflineDeadLetter, to writer: inout RecordWriter) {
        writer.write(text: letter.reason.rawValue)
        writer.write(text: letter.message)
        writer.write(UInt16(truncatingIfNeeded: letter.statusCode ?? 0))
        writer.write(letter.fields)
        writer.write(counted: letter.body)
    }

    // MARK: Reading

    private static func request(_ reader: inout RecordReader, _ version: UInt16) throws(RecordReader.FieldError)
        -> QueuedRequest
    {
        let id = OfflineID(try reader.number("number"))
        let lane = try reader.text(limit: textLimit, "lane")
        let tag = try reader.optionalText(limit: textLimit, "tag")
        let method = try reader.text(limit: textLimit, "method")
        guard HTTPRequest.Method(rawValue: method) != nil else { throw reader.makeError("method") }
        // User info and fragments are never written.
        guard let url = try? HTTPURL(try reader.text(limit: textLimit, "URL"), pathAsIs: true), url.user == nil,
            url.password == nil, url.fragment == nil
        else { throw reader.makeError("URL") }
        let fields = try reader.fields(limit: textLimit)
        let secretFields = try reader.list(of: UInt16.self, "secret fields") { reader throws(RecordReader.FieldError) in
            try reader.text(limit: textLimit, "secret field")
        }
        var request = QueuedRequest(
            id: id, lane: lane, tag: tag, method: method, url: url, fields: fields, secretFields: secretFields,
            idempotencyKey: try reader.optionalText(limit: textLimit, "key"),
            contentType: try reader.optionalText(limit: textLimit, "content type"), body: try body(&reader),
            submitted: try reader.number("submission"), expires: try reader.number("expiry"))
        request.attempts = try reader.number("attempts")
        request.stage =
            switch try reader.number("state") as UInt8 {
            case 0: .waiting
            case 1: .sending
            case 2: .dead(try letter(&reader))
            case 3: .uncertain(try letter(&reader))
            default: throw reader.makeError("state")
            }
        if version >= 2, try reader.flag("deadline") {
            request.bootDeadline = BootDeadline(
                boot: try reader.text(limit: 256, "boot"), milliseconds: try reader.number("deadline"))
        }
        if version >= 3 { request.renewed = try reader.optionalNumber("retry") }
        if version >= 4 {
            let name = try reader.optionalText(limit: 256, "coding")
            let level: Int64? = try reader.optionalNumber("level")
            // A body in a coding of another build is sent uncompressed.
            request.compression = name.flatMap { BodyCompression(name: $0, level: level.map { Int(clamping: $0) }) }
            if let name, request.compression == nil, request.fields[.contentEncoding]?.lowercased() == name {
                request.fields[.contentEncoding] = nil
            }
        }
        return request
    }

    private static func body(_ reader: inout RecordReader) throws(RecordReader.FieldError) -> QueuedBody {
        switch try reader.number("body") as UInt8 {
        case 0: return .none
        case 1: return .inline(Array(try reader.counted(limit: byteLimit, "body")))
        case 2: return .own(try mark(&reader))
        case 3:
            let path = try reader.text(limit: textLimit, "path")
            guard path.hasPrefix("/"), !path.utf8.contains(0) else { throw reader.makeError("path") }
            return .file(path, try mark(&reader))
        default: throw reader.makeError("body")
        }
    }

    private static func mark(_ reader: inout RecordReader) throws(RecordReader.FieldError) -> QueuedBody.FileIdentity {
        let byteCount: UInt64 = try reader.number("length")
        let digest = Array(try reader.counted(limit: 32, "digest"))
        guard digest.count == 32 else { throw reader.makeError("digest") }
        return QueuedBody.FileIdentity(byteCount: byteCount, digest: digest)
    }

    private static func letter(_ reader: inout RecordReader) throws(RecordReader.FieldError) -> OfflineDeadLetter {
        // An unknown reason of a later version is treated as a rejection.
        let reason = OfflineDeadLetter.Reason(rawValue: try reader.text(limit: textLimit, "reason")) ?? .refused
        let message = try reader.text(limit: textLimit, "message")
        let status: UInt16 = try reader.number("status")
        let fields = try reader.fields(limit: textLimit)
        let body = Array(try reader.counted(limit: OfflineDeadLetter.bodyLimit, "response body"))
        return OfflineDeadLetter(
            reason, message: message, statusCode: status == 0 ? nil : Int(status), fields: fields, body: body)
    }
}
