import MartletCore
import MartletCache
import MartletConnections
import MartletTransport
import MartletWire

extension Call {
    /// The cache in force; `nil` where it has no part in the call: there is none, or the body is wanted as it stands on the
    /// wire, or whatever its length is said to be, or the request goes to the server as a whole.
    var cache: ResponseCache? {
        guard let cache = settings.configuration.cache, !options.isRaw, !options.ignoresContentLength else {
            return nil
        }
        return givenRequest.map { Call.isForServer($0) } ?? false ? nil : cache
    }

    /// The call as the cache asks the network: with fields of its own, and for as long as anybody waits for it.
    func asking(_ fields: FieldBlock) -> Call { supplemented { $0.cacheFields = fields } }

    /// What the cache must know of the request.
    func cacheRequest() -> CacheRequest {
        let fields = sentFields
        let caller = (supplement?.identity ?? Call.credential(in: fields)).map {
            "credential-" + ResponseCache.conceal($0)
        }
        var partition = [self[CachePartitionKey.self] ?? caller ?? ""].filter { !$0.isEmpty }
        let server = otherServer
        // Only in the partition without a name are credentials looked at (RFC 9111 §3.5), and this one has a name.
        if partition.isEmpty, !server.isEmpty, let caller { partition = [caller] }
        partition += server
        var mode = self[CacheModeKey.self]
        if mode == .cacheThenNetwork, !options.takesPreview { mode = .standard }
        return CacheRequest(
            method: method.rawValue,
            key: CacheKey(url: url.absoluteForm, partition: partition.joined(separator: " ")),
            fields: fields, mode: mode, conceal: ResponseCache.conceal)
    }

    /// What tells the resource from the one that the URL names; empty as good as always.
    private var otherServer: [String] {
        var server: [String] = []
        // A Host of the caller's may name another resource than the URL does, by which all is found.
        if let host = self.fields[.hostField], host.lowercased() != url.hostFieldValue.lowercased() {
            server.append("host-" + ResponseCache.conceal(host))
        }
        // Another server than the URL's has answers of its own.
        if let place = settings.configuration.otherPlace(of: url) {
            server.append("place-" + ResponseCache.conceal(place))
        }
        return server
    }

    /// The credential that a request is sent with, each byte as a character, so that no two are the same text.
    private static func credential(in fields: FieldBlock) -> String? {
        let lines = fields.rawValues(of: "Authorization")
        return lines.isEmpty ? nil : lines.map { ByteText.latin1($0) }.joined(separator: "\n")
    }
}
