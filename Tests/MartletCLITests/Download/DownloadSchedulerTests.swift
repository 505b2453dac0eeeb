import Testing

@testable import MartletCLI

@Suite("Scheduling of downloads")
struct DownloadSchedulerTests {
    private func started(_ line: inout DownloadScheduler) -> [Int] {
        var started: [Int] = []
        while let index = line.next() { started.append(index) }
        return started
    }

    @Test("Downloads start in order, as many as the limit allows")
    func limit() {
        var line = DownloadScheduler(hosts: ["a", "b", "c", "d"], limit: 2, limitPerHost: 2)
        #expect(started(&line) == [0, 1])
        line.end(1)
        #expect(started(&line) == [2])
        line.end(0)
        line.end(2)
        #expect(started(&line) == [3])
        line.end(3)
        #expect(started(&line).isEmpty)
    }

    @Test("A full host delays only its own downloads, which start first once it has room")
    func hosts() {
        var line = DownloadScheduler(hosts: ["a", "a", "a", "b", "a", "c"], limit: 4, limitPerHost: 2)
        #expect(started(&line) == [0, 1, 3, 5])
        line.end(3)
        #expect(started(&line).isEmpty, "both that are left are of the full host")
        line.end(0)
        #expect(started(&line) == [2])
        line.end(5)
        #expect(started(&line).isEmpty)
        line.end(2)
        #expect(started(&line) == [4])
    }

    @Test("The delayed download that comes first in the queue starts first")
    func order() {
        var line = DownloadScheduler(hosts: ["a", "b", "b", "a"], limit: 2, limitPerHost: 1)
        #expect(started(&line) == [0, 1])
        line.end(0)
        line.end(1)
        #expect(started(&line) == [2, 3])
    }

    @Test("A stopped scheduler starts no downloads")
    func stop() {
        var line = DownloadScheduler(hosts: ["a", "b"], limit: 1, limitPerHost: 1)
        #expect(started(&line) == [0])
        line.stop()
        line.end(0)
        #expect(started(&line).isEmpty)
    }

    @Test("The limits hold at every step for any order of completion, and every download starts once")
    func random() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            let hosts = (0..<40).map { _ in "\(Int.random(in: 0..<4, using: &generator))" }
            var line = DownloadScheduler(hosts: hosts, limit: 5, limitPerHost: 2)
            var running: [Int] = []
            var seen: Set<Int> = []
            while true {
                for index in started(&line) {
                    #expect(seen.insert(index).inserted)
                    running.append(index)
                }
                #expect(running.count <= 5)
                for host in Set(hosts) { #expect(running.count { hosts[$0] == host } <= 2) }
                guard let ended = running.indices.randomElement(using: &generator) else { break }
                line.end(running.remove(at: ended))
            }
            #expect(seen.count == hosts.count)
        }
    }

    @Test("A hundred thousand downloads of one host are scheduled in one pass")
    func large() {
        var line = DownloadScheduler(hosts: Array(repeating: "a", count: 100_000), limit: 3, limitPerHost: 2)
        var count = 0
        var running = started(&line)
        while let index = running.popLast() {
            count += 1
            line.end(index)
            running += started(&line)
        }
        #expect(count == 100_000)
    }
}
