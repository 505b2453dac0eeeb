import FoundationEssentials
import Martlet
import Testing

@Suite("Memory pressure")
struct MemoryPressureSourceTests {
    @Test("A subscriber gets the current level immediately and then each latest level")
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

    @Test("An unchanged manual level is not repeated, and the source's end ends the sequence")
    func manualEnd() async {
        var pressure: ManualMemoryPressure? = ManualMemoryPressure()
        var levels = pressure?.source.makeAsyncIterator()
        #expect(await levels?.next() == .normal)
        pressure?.set(.normal)
        pressure = nil
        #expect(await levels?.next() == nil)
    }

    @Test("Cancelling the subscribing task ends its iteration")
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

    @Test("The level is read from the given files in the kernel's format")
    func files() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/memory.pressure"
        try Data("some avg10=30.00 total=1\nfull avg10=2.00 total=1\n".utf8).write(to: URL(filePath: path))
        let source = MemoryPressureSource(files: [FilePath(path)], interval: .milliseconds(1))
        #expect(source.isSupported)
        var levels = source.makeAsyncIterator()
        #expect(await levels.next() == .warning)
        try FileManager.default.removeItem(atPath: path)
        #expect(await levels.next() == .normal)
        #expect(!source.isSupported)
    }

    @Test("Without such a file the level stays normal, and the source reports it as unavailable")
    func missing() async {
        let source = MemoryPressureSource(files: ["/nonexistent/pressure/memory"])
        #expect(!source.isSupported)
        var levels = source.makeAsyncIterator()
        #expect(await levels.next() == .normal)
    }

    @Test("The machine's own level is available from the start")
    func system() async {
        var levels = MemoryPressureSource.system.makeAsyncIterator()
        #expect(await levels.next() != nil)
        let isThere = FileManager.default.isReadableFile(atPath: "/proc/pressure/memory")
        #expect(MemoryPressureSource.system.isSupported == isThere)
    }
}
