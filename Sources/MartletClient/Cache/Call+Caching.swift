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

    /// The codings of a response that are to be undone.
    func codings(of head: ResponseHead) throws(ContentDecodingError) -> [ContentCoding] {
        guard undoesCoding, head.fields.contains("content-encoding") else { return [] }
        return try ContentCodingPlan(
            fieldValues: head.fields.values(of: "content-encoding"),
            limits: settings.configuration.decompressionLimits
        )
        .codings
    }

    /// The call as the cache asks the network: with fields of its own, and for as long as anybody waits for it.
    func asking(_ fields: FieldBlock) -> Call {
        supplemented { $0.cacheFields = fields }
    }

    /// The call as the cache makes it for whoever waits for its answer: each of them has a total clock of its own.
    var shared: Call {
        var timeouts = timeouts
        timeouts.total = nil
        return Call(self, supplement: supplement, hops: hops, observer: observer, timeouts: timeouts)
    }

    /// The call, observed by nobody.
    var unobserved: Call {
        Call(self, supplement: supplement, hops: hops, observer: nil)
    }

    /// What the cache must know of the request.
    func cacheRequest() -> CacheRequest {
        let fields = sentFields
        let caller = (supplement?.identity ?? Call.credential(in: fields)).map {
            "credential-" + ResponseCache.conceal($0)
        }
        var partition =
            [options.cachePartition ?? settings.configuration.cachePartition ?? caller ?? ""]
            .filter { !$0.isEmpty }
        let server = otherServer
        // Only in the partition without a name are credentials looked at (RFC 9111 §3.5), and this one has a name.
        if partition.isEmpty, !server.isEmpty, let caller { partition = [caller] }
        partition += server
        var mode = options.cacheMode ?? settings.configuration.cacheMode
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

    /// The fields that the request is sent with, as far as answers are chosen by them: all but those of its framing.
    private var sentFields: FieldBlock {
        let own = fields
        let cookies = supplement?.cookies
        if let lines = settings.defaultLines, options.omittedFields.isEmpty, lines.suit(own) {
            var block = asksForCoding ? lines.askingFields : lines.plainFields
            if own.isEmpty, supplement == nil { return block }
            append(own, cookies, to: &block)
            return block
        }
        var block = FieldBlock()
        let defaults = settings.configuration.defaultFields(asksForCoding: asksForCoding) { name in
            own[name] != nil || options.omittedFields.contains(name)
        }
        for field in defaults { block.append(field) }
        append(own, cookies, to: &block)
        return block
    }

    private func append(_ own: HTTPFields, _ cookies: [UInt8]?, to block: inout FieldBlock) {
        for field in own where !RequestComposer.isSetHere(field.name) || field.name == .cookie {
            block.append(field)
        }
        if let cookies { block.append(name: "Cookie".utf8, value: cookies) }
        if let authorization = supplement?.authorization {
            block.append(name: "Authorization".utf8, value: authorization)
        }
    }
}

extension Call {
    /// The answer of what the cache holds in memory, where nothing else happens to the call: the first step of ``CacheStep``.
    @inline(never)
    func answerFromMemory(_ core: SessionCore, _ dialer: Dialer, _ control: TransferControl) -> Answer? {
        guard isPlainBesideCache, !core.events.isWatched, !control.isCancelled,
            method == .get || method == .head, !body.isPresent,
            let cache
        else { return nil }
        var step = CacheStep(
            cache: cache, core: core, dialer: dialer, call: self, control: control, ignoresStored: false)
        return step.answerAtOnce()
    }
}
