import FoundationEssentials
import Martlet
import Testing

@Suite("Memory pressure")
struct MemoryPressureSourceTests {
    @Test("Whoever follows memory pressure gets the present level at once, and then each newest one")
    func manual() async {
        let pressure = ManualMemoryPressure(.warning)
        var levels = pressure.source.makeAsyncIterator()
        #expect(await levels.next() == .warning)
        pressure.set(.critical)
        pressure.set(.normal)
        #expect(await levels.next() == .normal)
        var late = pressure.source.makeAsyncIterator()
        #expect(await late.next() == .normal)
        #expect(pressure.source.isSupported)
        #expect(pressure.level == .normal)
    }

    @Test("A level that is set by hand to what it was is not told again, and its end ends the following")
    func manualEnd() async {
        var pressure: ManualMemoryPressure? = ManualMemoryPressure()
        var levels = pressure?.source.makeAsyncIterator()
        #expect(await levels?.next() == .normal)
        pressure?.set(.normal)
        pressure = nil
        #expect(await levels?.next() == nil)
    }

    @Test("Cancelling the task that follows ends its iteration")
    func cancelled() async {
        let pressure = ManualMemoryPressure()
        let task = Task {
            var seen: [MemoryPressure] = []
            for await level in pressure.source { seen.append(level) }
            return seen
        }
        task.cancel()
        #expect(await task.value.count <= 1)
    }

    @Test("Pressure is read from the files of the kernel's format that are named")
    func files() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/memory.pressure"
        try Data("some avg10=30.00 total=1\nfull avg10=2.00 total=1\n".utf8).write(to: URL(filePath: path))
        let source = MemoryPressureSource(files: [FilePath(path)], interval: .milliseconds(1))
        #expect(source.isSupported)
        var levels = source.makeAsyncIterator()
        #expect(await levels.next() == .warning)
        try FileManager.default.removeItem(atPath: path)
        #expect(await levels.next() == .normal)
        #expect(!source.isSupported)
    }

    @Test("Where there is no such file the level stays normal, and the source says so")
    func missing() async {
        let source = MemoryPressureSource(files: ["/nonexistent/pressure/memory"])
        #expect(!source.isSupported)
        var levels = source.makeAsyncIterator()
        #expect(await levels.next() == .normal)
    }

    @Test("The machine's own pressure has a level from the first")
    func system() async {
        var levels = MemoryPressureSource.system.makeAsyncIterator()
        #expect(await levels.next() != nil)
        let isThere = FileManager.default.isReadableFile(atPath: "/proc/pressure/memory")
        #expect(MemoryPressureSource.system.isSupported == isThere)
    }
}
