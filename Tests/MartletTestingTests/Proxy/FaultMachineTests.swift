import Testing

@testable import MartletTesting

@Suite("Decisions of the fault proxy")
struct FaultMachineTests {
    private func machine(_ options: FaultOptions, seed: UInt64 = 1, connection: Int = 1) -> FaultMachine {
        FaultMachine(options: options, seed: seed, connection: connection)
    }

    @Test("Without fault rates everything passes")
    func passes() {
        var machine = machine(FaultOptions(.none))
        for _ in 0..<100 {
            machine.clientSent()
            #expect(machine.originSent(10, isPause: true) == .forward)
        }
    }

    @Test("A fault occurs at its byte position, however the response is split")
    func strikesAtItsPlace() {
        var options = FaultOptions.only(.truncated)
        options.offsets = 100..<101
        var machine = machine(options)
        #expect(machine.originSent(60, isPause: false) == .forward)
        #expect(machine.originSent(40, isPause: false) == .forward)
        #expect(machine.originSent(60, isPause: false) == .strike(.truncated, after: 0))
    }

    @Test("If the origin pauses before the position, the fault occurs in its last bytes")
    func strikesAtThePause() {
        var options = FaultOptions.only(.reset)
        options.offsets = 1000..<1001
        var machine = machine(options)
        #expect(machine.originSent(64, isPause: false) == .forward)
        #expect(machine.originSent(30, isPause: true) == .strike(.reset, after: 10))
    }

    @Test("With exact positions a response that pauses or ends before the position passes")
    func strikesExactly() {
        var options = FaultOptions.only(.reset)
        options.offsets = 1000..<1001
        options.isExact = true
        var machine = machine(options)
        #expect(machine.originSent(64, isPause: true) == .forward)
        #expect(machine.originSent(936, isPause: true) == .forward)
        #expect(machine.originSent(10, isPause: true) == .strike(.reset, after: 0))
        machine.clientSent()
        #expect(machine.originSent(1000, isPause: true) == .forward)
    }

    @Test("Connections after the last faulty one pass unchanged")
    func faultyConnections() {
        var options = FaultOptions.only(.truncated)
        options.faultyConnectionCount = 2
        for connection in 1...4 {
            var machine = machine(options, connection: connection)
            let isForwarded = machine.originSent(10, isPause: true) == .forward
            #expect(isForwarded == (connection > 2))
        }
    }

    @Test("Garbage replaces the first byte")
    func garbageComesFirst() {
        var machine = machine(.only(.garbage))
        #expect(machine.originSent(64, isPause: false) == .strike(.garbage, after: 0))
        let garbage = machine.garbage()
        #expect((1...1024).contains(garbage.count))
    }

    @Test("A slow response is slow to its end, and the next one is drawn again")
    func slownessLasts() {
        var options = FaultOptions.only(.slow)
        options.scope = .connections
        var machine = machine(options)
        #expect(machine.originSent(10, isPause: false) == .drip)
        #expect(machine.originSent(10, isPause: true) == .drip)
        machine.clientSent()
        #expect(machine.isBetweenResponses)
        #expect(machine.originSent(10, isPause: true) == .forward)
    }

    @Test("The number of faults matches the rates")
    func rates() {
        var made: [InjectedFault: Int] = [:]
        for connection in 1...20_000 {
            var machine = machine(FaultOptions(.stormy), connection: connection)
            switch machine.originSent(500, isPause: true) {
            case .forward: continue
            case .drip: made[.slow, default: 0] += 1
            case .strike(let fault, _): made[fault, default: 0] += 1
            }
        }
        #expect((900...1100).contains(made[.slow, default: 0]))
        for fault in [InjectedFault.reset, .stall, .truncated, .garbage] {
            #expect((150...250).contains(made[fault, default: 0]), "\(fault)")
        }
    }

    @Test("The same seed produces the same faults, and another seed produces others")
    func seeds() {
        func steps(_ seed: UInt64) -> [FaultMachine.Step] {
            (1...300).map { connection in
                var machine = machine(FaultOptions(.stormy), seed: seed, connection: connection)
                return machine.originSent(500, isPause: true)
            }
        }
        #expect(steps(5) == steps(5))
        #expect(steps(5) != steps(6))
    }
}
