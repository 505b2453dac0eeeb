import HTTPTypes

extension OriginHandler {
    /// Receives resumable uploads by two protocols, and plain ones, into a store: at any path that does not begin with
    /// `/.uploads/`, where the upload URLs are. The response to a complete file is `201 stored N bytes`.
    public static func resumableUploads(_ store: ResumableUploadStore) -> OriginHandler {
        OriginHandler { request in try await ResumableUploadHandler(store: store, request: request).respond() }
    }
}

/// Responds to one request of a client that uploads.
private struct ResumableUploadHandler {
    private static let prefix = "/.uploads/"
    private static let interopVersion = "Upload-Draft-Interop-Version"
    let store: ResumableUploadStore
    let request: OriginRequest

    private typealias Upload = ResumableUploadStore.Upload

    func respond() async throws -> OriginResponse {
        let fault = store.begin(request.method)
        switch fault {
        case .status(let status, let fields): return .status(status, headers: fields)
        case .hold(afterBytes: 0), .cut(afterBytes: 0): try await stop(fault)
        default: break
        }
        var response =
            request.path.hasPrefix(ResumableUploadHandler.prefix)
            ? try await resume(fault) : try await create(fault)
        switch fault {
        case .loseResponse: throw OriginFault(.cut)
        case .claimOffset(let offset): response.headers["Upload-Offset"] = "\(offset)"
        default: break
        }
        return response
    }

    // MARK: Creation

    private func create(_ fault: ResumableUploadStore.Fault?) async throws -> OriginResponse {
        if request.method == .options { return announcement }
        if let version = request.headers["Tus-Resumable"], store.kinds.contains(.tus) {
            guard version == "1.0.0" else { return .status(412, headers: ["Tus-Version": "1.0.0"]) }
            guard request.method == .post, let length = number("Upload-Length") else { return .status(400) }
            guard length <= UInt64(store.limits.maximumSize) else { return .status(413) }
            let id = store.create(upload(.tus, length: length, isComplete: length == 0))
            return tus(201, ["Location": ResumableUploadHandler.prefix + "\(id)"])
        }
        guard let complete = boolean("Upload-Complete"), store.kinds.contains(.ietf) else {
            let id = store.create(upload(.plain, length: request.body.declaredLength))
            return try await receive(fault, id, turn: 0, completes: true) ?? stored(id)
        }
        let length = number("Upload-Length") ?? (complete ? request.body.declaredLength : nil)
        if let length, length > UInt64(store.limits.maximumSize) { return .status(413, headers: limitFields) }
        if let rejection = rejection(completes: complete) { return rejection }
        let id = store.create(upload(.ietf, length: length))
        let location: OriginFields = ["Location": ResumableUploadHandler.prefix + "\(id)"]
        if store.sendsInterimResponses, request.headers[ResumableUploadHandler.interopVersion] == "8" {
            var fields = location
            fields[ResumableUploadHandler.interopVersion] = "8"
            try await request.send(InterimResponse(104, headers: fields))
        }
        if let response = try await receive(fault, id, turn: 0, completes: complete) { return response }
        if complete { return stored(id) }
        return .status(201, headers: OriginFields(Array(location) + Array(limitFields)))
    }

    private var announcement: OriginResponse {
        var fields = limitFields
        if store.kinds.contains(.ietf) { fields["Accept-Patch"] = "application/partial-upload" }
        if store.kinds.contains(.tus) {
            fields["Tus-Resumable"] = "1.0.0"
            fields["Tus-Version"] = "1.0.0"
            fields["Tus-Extension"] = "creation,termination"
        }
        return OriginResponse(204, headers: fields)
    }

    private func upload(_ kind: ResumableUploadStore.Kind, length: UInt64?, isComplete: Bool = false) -> Upload {
        Upload(
            kind: kind, method: request.method, path: request.path, headers: request.headers, length: length,
            isComplete: isComplete)
    }

    // MARK: The upload URL

    private func resume(_ fault: ResumableUploadStore.Fault?) async throws -> OriginResponse {
        guard let id = Int(request.path.dropFirst(ResumableUploadHandler.prefix.count)), let upload = store.take(id)
        else { return .status(404) }
        let isTus = upload.kind == .tus
        if isTus, request.headers["Tus-Resumable"] != "1.0.0" { return tus(412, ["Tus-Version": "1.0.0"]) }
        switch request.method {
        case .head: return head(upload)
        case .delete:
            store.remove(id)
            return isTus ? tus(204) : .status(204)
        case .patch: break
        default: return .status(405, headers: ["Allow": "HEAD, PATCH, DELETE"])
        }
        let type = isTus ? "application/offset+octet-stream" : "application/partial-upload"
        guard request.contentType == type else { return .status(415) }
        guard number("Upload-Offset") == UInt64(upload.bytes.count) else {
            return .status(409, headers: ["Upload-Offset": "\(upload.bytes.count)", "Upload-Complete": "?0"])
        }
        let completes = isTus ? false : boolean("Upload-Complete")
        guard let completes, !upload.isComplete else { return .status(400) }
        if !isTus, let rejection = rejection(completes: completes) { return rejection }
        if let response = try await receive(fault, id, turn: upload.turn, completes: completes) { return response }
        if completes { return stored(id) }
        let count = store.byteCount(of: id)
        if isTus { store.change(id) { $0.isComplete = $0.length == UInt64($0.bytes.count) } }
        return isTus
            ? tus(204, ["Upload-Offset": "\(count)"])
            : OriginResponse(204, headers: ["Upload-Complete": "?0", "Upload-Offset": "\(count)"])
    }

    private func head(_ upload: Upload) -> OriginResponse {
        var fields: OriginFields = ["Upload-Offset": "\(upload.bytes.count)", "Cache-Control": "no-store"]
        if let length = upload.length { fields["Upload-Length"] = "\(length)" }
        if upload.kind == .tus { return tus(200, fields) }
        fields["Upload-Complete"] = upload.isComplete ? "?1" : "?0"
        return OriginResponse(204, headers: OriginFields(Array(fields) + Array(limitFields)))
    }

    // MARK: Content

    /// Appends the content of the request while it arrives.
    /// - Returns: The response to invalid content; `nil` if the content was appended.
    private func receive(_ fault: ResumableUploadStore.Fault?, _ id: Int, turn: Int, completes: Bool) async throws
        -> OriginResponse?
    {
        var (received, limit) = (0, Int.max)
        switch fault {
        case .cut(let count), .hold(let count): limit = count
        default: break
        }
        for try await piece in request.body {
            let part = piece.prefix(limit - received)
            guard let upload = store.append(part, to: id, turn: turn) else { throw OriginFault(.cut) }
            received += part.count
            if upload.bytes.count > Int(clamping: upload.length ?? .max)
                || upload.bytes.count > store.limits.maximumSize
            {
                store.remove(id)
                return .status(400)
            }
            if received == limit { try await stop(fault) }
        }
        guard let upload = store.append([], to: id, turn: turn) else { throw OriginFault(.cut) }
        if completes, let length = upload.length, length != UInt64(upload.bytes.count) { return .status(400) }
        if completes { store.change(id) { $0.isComplete = true } }
        return nil
    }

    /// Carries out a fault within the content.
    private func stop(_ fault: ResumableUploadStore.Fault?) async throws {
        if case .hold = fault {
            store.beginHolding()
            defer { store.endHolding() }
            // Reads no more. The task is cancelled when the origin stops.
            try await Task.sleep(for: .seconds(3600))
        }
        throw OriginFault(.cut)
    }

    private func stored(_ id: Int) -> OriginResponse {
        let count = store.byteCount(of: id)
        return .text("stored \(count) bytes\n", status: 201, headers: ["Upload-Complete": "?1"])
    }

    /// The response to content whose size the limits do not allow; `nil` if they do.
    private func rejection(completes: Bool) -> OriginResponse? {
        guard let size = request.body.declaredLength else { return nil }
        let isTooSmall = !completes && size > 0 && size < UInt64(store.limits.minimumAppend ?? 0)
        let isTooLarge = size > UInt64(store.limits.maximumAppend ?? .max)
        return isTooSmall || isTooLarge ? .status(isTooLarge ? 413 : 400, headers: limitFields) : nil
    }

    private var limitFields: OriginFields {
        guard store.kinds.contains(.ietf) else { return [:] }
        var members = ["max-size=\(store.limits.maximumSize)"]
        if let size = store.limits.maximumAppend { members.append("max-append-size=\(size)") }
        if let size = store.limits.minimumAppend { members.append("min-append-size=\(size)") }
        return ["Upload-Limit": members.joined(separator: ", ")]
    }

    private func tus(_ status: Int, _ fields: OriginFields = [:]) -> OriginResponse {
        OriginResponse(status, headers: OriginFields(Array(fields) + [(name: "Tus-Resumable", value: "1.0.0")]))
    }

    private func number(_ name: String) -> UInt64? { request.headers[name].flatMap { UInt64($0) } }

    private func boolean(_ name: String) -> Bool? { request.headers[name].flatMap { ["?0": false, "?1": true][$0] } }
}
