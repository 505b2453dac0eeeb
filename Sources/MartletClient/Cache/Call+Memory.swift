import MartletCache
import MartletConnections
import MartletWire

extension Call {
    /// The answer of what the cache holds in memory, where that may be used as it is and nothing else happens to the call.
    ///
    /// The short form of ``CacheStep/answer()`` for what does not wait: `nil` means that that one has to be asked.
    @inline(never)
    func answerFromMemory(_ core: SessionCore, _ control: TransferControl) -> Answer? {
        guard isPlainBesideCache, !core.events.isWatched, !control.isCancelled,
            method == .get || method == .head, !body.isPresent,
            let cache
        else { return nil }
        let request = cacheRequest()
        let found = cache.store.inMemory(request.key)
        guard !found.isEmpty,
            case .serve(let answer) = CacheDecision(
                request, variants: found.map(\.variant), now: .now, policy: cache.policy),
            !RedirectRule.mayFollow(answer.head.status)
        else { return nil }
        let response = found[answer.variant]
        guard case .bytes(let bytes) = response.body else { return nil }
        let part: ArraySlice<UInt8>
        switch answer.content {
        case .none: part = []
        // What cannot be decoded is asked for again.
        case .whole:
            if undoesCoding, answer.head.fields.contains("content-encoding") { return nil }
            part = bytes[...]
        case .bytes(let range): part = bytes[Int(range.lowerBound)..<Int(range.upperBound)]
        }
        control.download?.update { $0.totalByteCount = answer.byteCount(of: response) }
        cache.noteUse(of: response, answer)
        return Answer(
            self, answer, CachedBody(.bytes(part), in: cache, of: response, loop: core.loop), of: response,
            codings: [], AnswerCaching(answer.source, answer.status))
    }
}
