import MartletConnections
import MartletWire

/// Sends the cookies of a jar, and keeps those that answers set.
struct CookieStage: CallStage {
    let jar: CookieJar
    let progress: CallProgress

    func answer(_ call: Call, _ next: CallNext) async throws -> Answer {
        var request = call
        if !jar.isEmpty {
            let url = call.url
            let cookies = try await reading(.preparing) { await jar.headerBytes(for: url) }
            request = call.supplemented { $0.cookies = cookies }
        }
        let answer = try await next(request)
        do {
            try await store(answer)
        } catch {
            answer.finish()
            throw error
        }
        return answer
    }

    private func store(_ answer: Answer) async throws {
        // A forwarding proxy's refusal says nothing of the origin, whether it is answered with credentials or returned.
        if answer.head.status == 407, answer.call.isForwarded { return }
        let values: [[UInt8]]
        if answer.source == .network {
            guard answer.head.fields.contains("set-cookie") else { return }
            values = answer.head.fields.rawValues(of: "set-cookie").map(Array.init)
        } else {
            // What is stored set its cookies when it came; what validated it may set others.
            values = answer.caching?.setCookies ?? []
        }
        guard !values.isEmpty else { return }
        let url = answer.call.url
        try await reading(.evaluating, holding: answer.channel.heldExchange) {
            _ = await jar.store(setCookieBytes: values, from: url)
        }
    }

    /// Runs what needs the jar's public suffixes, which may be knowledge of the program, and its file.
    private func reading<Value: Sendable>(
        _ phase: HTTPError.Phase, holding exchange: Exchange? = nil,
        _ body: @escaping @Sendable () async -> Value
    ) async throws -> Value {
        if jar.isReady { return await body() }
        return try await progress.userCode.run(
            "the cookie jar's public suffixes and file", phase, holding: exchange,
            sentCount: progress.sentCount, body)
    }
}
