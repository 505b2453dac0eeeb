import Dispatch
import Glibc
import MartletFuzzing
import Synchronization

/// The entry that the variable `MARTLET_FUZZ_ENTRY` names.
private let entry: FuzzEntry = {
    let name = unsafe getenv("MARTLET_FUZZ_ENTRY").map { unsafe String(cString: $0) } ?? ""
    guard let entry = FuzzEntry.all.first(where: { $0.name == name }) else {
        let names = FuzzEntry.all.map(\.name).joined(separator: ", ")
        print("MARTLET_FUZZ_ENTRY is \"\(name)\" and must be one of: \(names)")
        exit(2)
    }
    return entry
}()

/// Handles an input of libFuzzer. A violated property ends the process, which libFuzzer reports.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = unsafe [UInt8](UnsafeBufferPointer(start: start, count: count))
    do throws(FuzzFinding) {
        switch entry.check {
        case .immediate(let check): try check(input)
        case .awaiting(let check): try wait(for: check, on: input)
        }
    } catch {
        print("FINDING in \(entry.name): \(error)")
        fflush(nil)
        abort()
    }
    return 0
}

/// Runs a check in a task and blocks until it ends. libFuzzer's own thread is not part of Swift's pool, so it can
/// block.
private func wait(
    for check: @escaping @Sendable ([UInt8]) async throws(FuzzFinding) -> Void, on input: [UInt8]
) throws(FuzzFinding) {
    let done = DispatchSemaphore(value: 0)
    let box = FindingBox()
    Task.detached {
        do throws(FuzzFinding) {
            try await check(input)
        } catch {
            box.finding.withLock { $0 = error }
        }
        done.signal()
    }
    done.wait()
    if let finding = box.finding.withLock({ $0 }) { throw finding }
}

/// The finding of a task, for the thread that waits for it.
private final class FindingBox: Sendable {
    let finding = Mutex<FuzzFinding?>(nil)
}
