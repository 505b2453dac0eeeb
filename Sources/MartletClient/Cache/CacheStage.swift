/// Answers from the cache, and stores what the network answers, as the rules of RFC 9111 decide.
///
/// ``CacheStep`` sends the requests itself, since several calls may share one transfer.
struct CacheStage: CallStage {
    let progress: CallProgress

    func answer(_ call: Call, _ next: CallNext) async throws -> Answer {
        if let answer = progress.takeFirstAnswer() { return answer }
        guard let cache = call.cache else { return try await next(call) }
        while true {
            let request = try progress.begin(call)
            var step = CacheStep(
                cache: cache, core: progress.core, dialer: progress.dialer, call: request,
                control: progress.control, ignoresStored: progress.ignoresStored,
                unwantedStatuses: progress.unwantedStatuses(call))
            do {
                let answer = try await step.answer()
                progress.answered()
                return answer
            } catch let error as HTTPError {
                if error.code == .storedBodyDamaged, progress.ignoreStored() { continue }
                let failed = step
                progress.standIn {
                    var step = failed
                    return try await step.staleAnswer()
                }
                throw progress.own(error)
            }
        }
    }
}
