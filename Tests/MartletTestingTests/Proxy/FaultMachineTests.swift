import Testing

@testable import MartletTesting

@Suite("What a fault proxy decides")
struct FaultMachineTests {
    private func machine(_ options: FaultOptions, seed: UInt64 = 1, connection: Int = 1) -> FaultMachine {
        FaultMachine(options: options, seed: seed, connection: connection)
    }

    @Test("Without rates everything passes")
    func passes() {
        var machine = machine(FaultOptions(.none))
        for _ in 0..<100 {
            machine.clientSpoke()
            #expect(machine.originSent(10, isPause: true) == .forward)
        }
    }

    @Test("A fault strikes at its place, in whichever piece that is")
    func strikesAtItsPlace() {
        var options = FaultOptions.only(.truncated)
        options.reach = 100..<101
        var machine = machine(options)
        #expect(machine.originSent(60, isPause: false) == .forward)
        #expect(machine.originSent(40, isPause: false) == .forward)
        #expect(machine.originSent(60, isPause: false) == .strike(.truncated, after: 0))
    }

    @Test("Where the origin pauses before the place, the fault strikes within what it sent last")
    func strikesAtThePause() {
        var options = FaultOptions.only(.reset)
        options.reach = 1000..<1001
        var machine = machine(options)
        #expect(machine.originSent(64, isPause: false) == .forward)
        #expect(machine.originSent(30, isPause: true) == .strike(.reset, after: 10))
    }

    @Test("Where faults are exact, a response that pauses or ends before the place passes")
    func strikesExactly() {
        var options = FaultOptions.only(.reset)
        options.reach = 1000..<1001
        options.isExact = true
        var machine = machine(options)
        #expect(machine.originSent(64, isPause: true) == .forward)
        #expect(machine.originSent(936, isPause: true) == .forward)
        #expect(machine.originSent(10, isPause: true) == .strike(.reset, after: 0))
        machine.clientSpoke()
        #expect(machine.originSent(1000, isPause: true) == .forward)
    }

    @Test("Behind the last connection that is to meet faults all passes")
    func faultyConnections() {
        var options = FaultOptions.only(.truncated)
        options.faultyConnectionCount = 2
        for connection in 1...4 {
            var machine = machine(options, connection: connection)
            let isForwarded = machine.originSent(10, isPause: true) == .forward
            #expect(isForwarded == (connection > 2))
        }
    }

    @Test("Garbage takes the place of the first byte")
    func garbageComesFirst() {
        var machine = machine(.only(.garbage))
        #expect(machine.originSent(64, isPause: false) == .strike(.garbage, after: 0))
        let garbage = machine.garbage()
        #expect((1...1024).contains(garbage.count))
    }

    @Test("A slow response is slow to its end, and the next is drawn for anew")
    func slownessLasts() {
        var options = FaultOptions.only(.slow)
        options.scope = .connections
        var machine = machine(options)
        #expect(machine.originSent(10, isPause: false) == .drip)
        #expect(machine.originSent(10, isPause: true) == .drip)
        machine.clientSpoke()
        #expect(machine.isBetweenResponses)
        #expect(machine.originSent(10, isPause: true) == .forward)
    }

    @Test("The faults are as many as the rates say")
    func rates() {
        var made: [ProxyHandshakeError: Int] = [:]
        for connection in 1...20_000 {
            var machine = machine(FaultOptions(.stormy), connection: connection)
            switch machine.originSent(500, isPause: true) {
            case .forward: continue
            case .drip: made[.slow, default: 0] += 1
            case .strike(let fault, _): made[fault, default: 0] += 1
            }
        }
        #expect((900...1100).contains(made[.slow, default: 0]))
        for fault in [ProxyHandshakeError.reset, .stall, .truncated, .garbage] {
            #expect((150...250).contains(made[fault, default: 0]), "\(fault)")
        }
    }

    @Test("The same seed makes the same faults, another one others")
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
