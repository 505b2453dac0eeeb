import Testing

@testable import MartletTransport

@Suite("FIFO queues and heaps")
struct QueuesTests {
    @Test("A queue has the elements of an array after any changes", arguments: 0..<20)
    func queue(seed: UInt64) {
        var random = RaceGenerator(state: seed)
        var queue = FIFOQueue<Int>(0..<Int(seed % 3))
        var model = Array(0..<Int(seed % 3))
        for number in 0..<2000 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                queue.append(number)
                model.append(number)
            case 5..<8:
                #expect(queue.popFirst() == (model.isEmpty ? nil : model.removeFirst()))
            case 8:
                let index = Int.random(in: 0...model.count, using: &random)
                queue.insert(number, at: index)
                model.insert(number, at: index)
            default:
                guard let index = model.indices.randomElement(using: &random) else { continue }
                #expect(queue.remove(at: index) == model.remove(at: index))
            }
            #expect(queue.elementsEqual(model) && queue.first == model.first && queue.count == model.count)
        }
    }

    @Test("A queue releases an element when it is removed")
    func release() {
        final class Object {}
        var queue = FIFOQueue<Object>()
        queue.append(Object())
        queue.append(Object())
        weak let first = queue.first
        #expect(first != nil)
        _ = queue.popFirst()
        #expect(first == nil && queue.count == 1)
    }

    @Test("A heap returns its elements sorted, also those added after others were removed", arguments: 0..<20)
    func heap(seed: UInt64) {
        var random = RaceGenerator(state: seed)
        var model = (0..<Int(seed * 7)).map { _ in Int.random(in: 0..<50, using: &random) }
        var heap = MinHeap(model)
        for _ in 0..<1000 {
            if Bool.random(using: &random) {
                let element = Int.random(in: 0..<50, using: &random)
                heap.insert(element)
                model.append(element)
            } else {
                model.sort()
                #expect(heap.popMin() == (model.isEmpty ? nil : model.removeFirst()))
            }
            #expect(heap.min == model.min() && heap.unordered.sorted() == model.sorted())
        }
        model.sort()
        for element in model { #expect(heap.popMin() == element) }
        #expect(heap.popMin() == nil && heap.count == 0)
    }

    @Test("The least recently used value is evicted, and every value that leaves is returned")
    func leastRecentlyUsed() {
        var table = LeastRecentlyUsed<Int, String>(limit: 2)
        #expect(table.update("a", for: 1) == nil)
        #expect(table.update("b", for: 2) == nil)
        #expect(table.value(for: 1) == "a")
        #expect(table.update("c", for: 3) == "b")
        #expect(table.value(for: 2) == nil)
        #expect(table.update("d", for: 1) == "a")
        #expect(table.count == 2)
        #expect(table.update("e", for: 4) == "c")
        #expect(table.update(nil, for: 4) == "e")
        #expect(table.update(nil, for: 4) == nil)
        #expect(table.count == 1)
        var least = LeastRecentlyUsed<Int, String>(limit: 0)
        #expect(least.update("a", for: 1) == nil)
        #expect(least.update("b", for: 2) == "a")
        #expect(least.count == 1)
    }
}
