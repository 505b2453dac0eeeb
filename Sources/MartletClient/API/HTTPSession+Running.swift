import Logging
import MartletConnections
import MartletTransport
import MartletWire

/// How a call is taken through: entered, observed, stepped from answer to answer, and left.
///
/// What most calls do without is not made part of what they wait in: see ``CallRunner``.
extension HTTPSession {
    /// Runs a call up to its head, then a closure with the answer; ends everything the call has open.
    @inline(__always)
    nonisolated func run<Result>(
        _ call: Call, _ control: TransferControl, isRestartable: Bool = false, isDownload: Bool = false,
        before prepare: (() async throws -> Void)? = nil, _ consume: (Answer) async throws -> Result
    ) async throws -> Result {
        guard let number = core.calls.enter(control) else { throw invalidated(call) }
        defer { leave(number, control) }
        do {
            return try await withTaskCancellationHandler {
                if Task.isCancelled { throw CancellationError() }
                if let prepare { try await prepare() }
                guard call.isPlain, !core.events.isWatched else {
                    if let answer = call.answerFromMemory(core, control) {
                        defer { answer.finish() }
                        log(call, answer)
                        return try await consume(answer)
                    }
                    return try await runObserved(
                        call, control, isRestartable: isRestartable, isDownload: isDownload, consume)
                }
                let answer = try await CallRunner(core: core, dialer: dialer, call: call, control: control)
                    .run()
                if RedirectRule.mayFollow(answer.head.status) {
                    return try await runSteps(call, control, from: answer, isRestartable, consume).result
                }
                defer { answer.finish() }
                log(call, answer)
                return try await consume(answer)
            } onCancel: {
                control.cancel()
            }
        } catch let failure {
            let error = AnswerRefusal.reason(of: failure)
            logFailure(of: call, error)
            throw await settings.mapped(error, UserCode(call, control: control, loop: core.loop))
        }
    }

    @inline(never)
    private nonisolated func invalidated(_ call: Call) -> HTTPError {
        HTTPError(
            .sessionInvalidated, phase: .preparing, message: "the session was invalidated",
            origin: call.url.origin.description)
    }

    @inline(never)
    private nonisolated func leave(_ number: Int, _ control: TransferControl) {
        core.calls.leave(number)
        if core.bandwidth.hasTransfers { control.endTransfer(core.bandwidth) }
        if control.isExposed {
            // Whoever still holds the task holds no connection, and no pool.
            control.begin(.none)
            control.upload?.update { $0.isFinished = true }
            control.download?.update { $0.isFinished = true }
        }
    }

    /// Runs a call of which somebody may want to know.
    @inline(never)
    private nonisolated func runObserved<Result>(
        _ call: Call, _ control: TransferControl, isRestartable: Bool, isDownload: Bool,
        _ consume: (Answer) async throws -> Result
    ) async throws -> Result {
        guard let observer = CallObserver(call, core: core, control: control, isDownload: isDownload) else {
            return try await runSteps(call, control, from: nil, isRestartable, consume).result
        }
        observer.tell(.started(method: call.method, url: call.url.bare.absoluteForm))
        async let told = observer.tellUpload()
        do {
            let (result, exchange) = try await runSteps(
                call.observed(by: observer), control, from: nil, isRestartable, consume)
            observer.endUpload()
            if !(await told) { await observer.tellUploadEnd() }
            if let exchange { await observer.completed(exchange) }
            return result
        } catch {
            observer.endUpload()
            if !(await told) { await observer.tellUploadEnd() }
            await observer.failed(AnswerRefusal.reason(of: error))
            throw error
        }
    }

    /// Runs a call of which more than one request may come.
    /// - Parameter first: The answer to its first request, where that was made already.
    /// - Returns: The result; and what the call was, where somebody is told.
    @inline(never)
    private nonisolated func runSteps<Result>(
        _ call: Call, _ control: TransferControl, from first: Answer?, _ isRestartable: Bool,
        _ consume: (Answer) async throws -> Result
    ) async throws -> (result: Result, exchange: HTTPExchange?) {
        var steps = CallSteps(core: core, dialer: dialer, call: call, control: control)
        var answer: Answer
        if let first {
            do {
                answer = try await steps.follow(first)
            } catch {
                first.finish()
                throw error
            }
        } else {
            answer = try await steps.answer()
        }
        while true {
            do {
                defer { answer.finish() }
                log(answer.call, answer)
                guard let observer = call.observer else { return (try await consume(answer), nil) }
                answer = try await observer.admit(answer, control)
                let result = try await consume(answer)
                return (result, result as? HTTPExchange ?? answer.exchange(with: []))
            } catch let error as HTTPError where isRestartable {
                guard try await steps.retries(after: error, of: answer.call, answer) else { throw error }
                control.download?.update { $0.completedByteCount = 0 }
                answer = try await steps.answer()
            }
        }
    }

    @inline(never)
    private nonisolated func logFailure(of call: Call, _ error: any Error) {
        settings.configuration.logger.debug(
            "call failed",
            metadata: ["method": "\(call.method)", "origin": "\(call.url.origin)", "error": "\(error)"])
    }

    @inline(never)
    private nonisolated func log(_ call: Call, _ answer: Answer) {
        settings.configuration.logger.debug(
            "response",
            metadata: [
                "method": "\(call.method)", "origin": "\(call.url.origin)",
                "status": "\(answer.head.status)", "reused": "\(answer.channel.isReused)",
                "source": "\(answer.source.rawValue)",
            ])
    }
}
