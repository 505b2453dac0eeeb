import MartletConnections
import MartletTransport

extension ResponseValidator {
    /// How much of a refused body is put into the error, in bytes.
    private static let beginningByteCount = 64 * 1024
    /// How long that may take.
    private static let beginningPatience = Duration.seconds(2)

    /// Asks everything of a subject.
    /// - Parameters:
    ///   - userCode: Runs closures for the call that has the response; `nil` outside of calls.
    ///   - exchange: The exchange whose connection that call holds.
    func check(
        _ subject: ValidationSubject, by userCode: @autoclosure () -> UserCode? = nil,
        holding exchange: Exchange? = nil
    ) async throws {
        for rule in rules {
            guard case .custom(let check) = rule, let userCode = userCode() else {
                try await subject.check(rule)
                continue
            }
            let response = subject.exchange
            try await userCode.run("the validator's closure", .evaluating, holding: exchange, sentCount: 1) {
                try await check(response)
            }
        }
    }

    /// Asks everything of an answer whose body has not been read. When it is refused, the error gets the beginning of the
    /// body, and the connection is not waited for any longer.
    /// - Throws: An ``HTTPError``; what a closure throws; `CancellationError`.
    func admit(_ answer: Answer, _ reader: BodyReader) async throws {
        guard !rules.isEmpty else { return }
        do {
            // What is announced is the size before a coding is undone.
            let announced = answer.codings.isEmpty ? answer.announcedByteCount : nil
            try await check(
                ValidationSubject(answer.exchange(with: []), announced: announced),
                by: UserCode(answer.call, control: reader.control, loop: .sharedOrStalled),
                holding: answer.channel.heldExchange)
        } catch var error as HTTPError {
            let beginning = await reader.beginning(
                upTo: ResponseValidator.beginningByteCount, within: ResponseValidator.beginningPatience)
            if reader.isCancelled { throw CancellationError() }
            error.exchange = answer.exchange(with: beginning)
            throw error
        }
    }
}
