import Synchronization

/// A stage that sends a request again without compression after a 415 (RFC 9110 §15.5.16). It precedes authentication,
/// because the repeated request may need new credentials.
final class CompressionStage: CallStage {
    private let progress: CallProgress
    /// Whether a server has rejected the compressed body. Further requests of the call are then not compressed.
    private let isRejected = Atomic(false)

    init(_ progress: CallProgress) { self.progress = progress }

    func answer(_ call: Call, _ next: CallNext) async throws -> StreamedResponse {
        let answer = try await next(isRejected.load(ordering: .relaxed) ? call.uncompressed : call)
        guard answer.head.status == 415, answer.call.body.compression?.isEnabled == true else { return answer }
        do {
            if progress.observer?.delegate != nil { await progress.readAhead(answer) }
            guard try await progress.isRepeatable(call, holding: answer.channel.heldExchange) else { return answer }
        } catch {
            answer.finish()
            throw error
        }
        isRejected.store(true, ordering: .relaxed)
        await progress.give(up: answer, reason: .retry)
        return try await next(progress.renewed(call).uncompressed)
    }
}
