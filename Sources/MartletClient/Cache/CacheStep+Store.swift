import MartletCache
import MartletConnections
import MartletTransport
import MartletWire

/// What is answered from the store.
extension CacheStep {
    /// The answer of what is stored, where that can still be read; what cannot is gone then.
    mutating func storedIfWhole(_ answer: CachedAnswer, isPreview: Bool = false) async throws
        -> Answer?
    {
        do {
            return try await stored(answer, isPreview: isPreview)
        } catch let error as HTTPError where error.code == .storedBodyDamaged {
            // It need not be gone: the file system may refuse to read it, and would again.
            ignoresStored = true
            return nil
        }
    }

    func stored(_ answer: CachedAnswer, isPreview: Bool = false) async throws -> Answer {
        let response = found[answer.variant]
        let result = try await make(answer, of: response, source: answer.source, isPreview: isPreview)
        cache.noteUse(of: response, answer)
        return result
    }

    /// Makes an answer of what is stored.
    func make(
        _ answer: CachedAnswer, of response: StoredResponse, source: HTTPExchange.Source,
        setCookies: [[UInt8]] = [], isPreview: Bool = false
    ) async throws -> Answer {
        var body = CachedBody.Source.bytes([])
        var ahead: [UInt8] = []
        let count = answer.byteCount(of: response)
        if count > 0 {
            var range = UInt64(0)..<response.variant.bodyLength
            if case .bytes(let part) = answer.content { range = part }
            switch response.body {
            case .bytes(let bytes): body = .bytes(bytes[Int(range.lowerBound)..<Int(range.upperBound)])
            case .file(let reader):
                body = .file(reader, range)
                // The first bytes are read before anything is answered: where they are damaged, it is a miss.
                let limit = Int(min(256 * 1024, range.upperBound - range.lowerBound))
                let start = range.lowerBound
                ahead = try await CachedBody.read(reader, at: start, limit, for: call)
            }
        }
        let codings: [ContentCoding]
        do throws(ContentDecodingError) {
            codings = answer.content == .whole ? try call.codings(of: answer.head) : []
        } catch {
            throw HTTPError(
                .contentDecodingFailed, phase: .receivingBody, message: error.description,
                origin: call.url.origin.description, underlying: error)
        }
        control.download?.update { $0.totalByteCount = count }
        return Answer(
            call, answer, CachedBody(body, in: cache, of: response, ahead: ahead, loop: core.loop),
            of: response, codings: codings,
            AnswerCaching(source, answer.status, setCookies: setCookies, isPreview: isPreview))
    }

    /// The answer where nothing else may answer (RFC 9111 §5.2.1.7).
    func unsatisfiable(_ status: CacheStatus) -> Answer {
        let head = ResponseHead(
            status: 504, reason: "Gateway Timeout", fields: FieldBlock([("Content-Length", "0")]))
        return Answer(
            call: call, channel: .cache(CachedBody(.bytes([]), in: cache, of: nil, loop: core.loop)),
            head: head, codings: [], announcedByteCount: 0, hasTrailers: false, interim: [], attempts: 0,
            waited: call.start, caching: AnswerCaching(.cache, status))
    }

    // MARK: In the place of errors

    /// What may stand in for an answer that did not come; `nil` where nothing may.
    mutating func staleAnswer(status: Int? = nil) async throws -> Answer? {
        guard let standIn = try await standIn(status: status) else { return nil }
        standIn.whenUsed()
        return standIn.answer
    }

    /// What may stand in for an error, without counting it yet: another attempt may still succeed.
    /// - Parameter status: The server's error; `nil` where there was no answer.
    mutating func standIn(status: Int?) async throws -> StandIn? {
        if !hasLookedIntoDisk { await lookIntoDisk() }
        guard let answer = cache.decider(request, after: decision, found).failed(with: status, now: .now)
        else {
            return nil
        }
        let response = found[answer.variant]
        let made: Answer
        do {
            made = try await make(answer, of: response, source: .staleCache)
        } catch let error as HTTPError where error.code == .storedBodyDamaged {
            return nil
        }
        let (cache, url, count) = (cache, request.key.url, answer.byteCount(of: response))
        return StandIn(answer: made) {
            cache.store.noteUse(of: response)
            cache.count(.staleOnError, served: count)
            cache.tell(.staleOnError(url: url, status: status))
        }
    }
}

extension Answer {
    /// One of what is stored.
    convenience init(
        _ call: Call, _ answer: CachedAnswer, _ body: CachedBody, of response: StoredResponse,
        codings: [ContentCoding], _ caching: AnswerCaching
    ) {
        self.init(
            call: call, channel: .cache(body), head: answer.head, codings: codings,
            announcedByteCount: answer.byteCount(of: response), hasTrailers: response.hasTrailers,
            interim: [], attempts: 0, waited: call.start, caching: caching)
    }
}

extension ResponseCache {
    /// What is stored was served.
    func noteUse(of response: StoredResponse, _ answer: CachedAnswer) {
        store.noteUse(of: response)
        store.promote(response)
        count(answer.isStale ? .staleHit : .hit, served: answer.byteCount(of: response))
    }
}

extension CachedAnswer {
    /// Where it comes from.
    var source: HTTPExchange.Source { isStale ? .staleCache : .cache }

    /// How many bytes of a stored body it has.
    func byteCount(of response: StoredResponse) -> UInt64 {
        switch content {
        case .none: 0
        case .whole: response.variant.bodyLength
        case .bytes(let range): range.upperBound - range.lowerBound
        }
    }
}
